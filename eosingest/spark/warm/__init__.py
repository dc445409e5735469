"""A warm JVM: started by `eosingest spark up`, in which each run makes and stops its SparkContext."""
