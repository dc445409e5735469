package eosingest.codec;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

import net.jpountz.xxhash.StreamingXXHash32;
import net.jpountz.xxhash.XXHash32;
import net.jpountz.xxhash.XXHashFactory;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionInputStream;
import org.apache.hadoop.io.compress.CompressionOutputStream;
import org.apache.hadoop.io.compress.Compressor;
import org.apache.hadoop.io.compress.Decompressor;

/**
 * Reads .lz4 files as the lz4 tool writes them, for Hadoop, whose codec of this suffix knows a framing of its own only.
 *
 * The formats are lz4's lz4_Frame_format.md and lz4_Block_format.md. All frames of a file are read, one after the other;
 * what a frame carries of checksums and sizes is verified. Compiled by hadoop_codecs.py, with Janino: no lambdas here.
 */
public class Lz4FrameCodec implements CompressionCodec {
    public CompressionInputStream createInputStream(InputStream in) throws IOException {
        return new Lz4FrameStream(in);
    }

    public CompressionInputStream createInputStream(InputStream in, Decompressor decompressor) throws IOException {
        return new Lz4FrameStream(in);
    }

    public Class getDecompressorType() {
        return null; // the stream decompresses
    }

    public Decompressor createDecompressor() {
        return null;
    }

    public String getDefaultExtension() {
        return ".lz4";
    }

    public CompressionOutputStream createOutputStream(OutputStream out) {
        throw new UnsupportedOperationException("it reads only");
    }

    public CompressionOutputStream createOutputStream(OutputStream out, Compressor compressor) {
        throw new UnsupportedOperationException("it reads only");
    }

    public Class getCompressorType() {
        throw new UnsupportedOperationException("it reads only");
    }

    public Compressor createCompressor() {
        throw new UnsupportedOperationException("it reads only");
    }
}

final class Lz4FrameStream extends CompressionInputStream {
    private static final int MAGIC = 0x184D2204;
    private static final int SKIPPABLE = 0x184D2A5; // without its last four bits
    private static final int WINDOW = 1 << 16;

    private final XXHash32 hash = XXHashFactory.safeInstance().hash32();
    private final StreamingXXHash32 contentHash = XXHashFactory.safeInstance().newStreamingHash32(0);
    private byte[] compressed = new byte[0];
    /** Of blocks that are linked first up to WINDOW bytes of what came before; then a block's content. */
    private byte[] content = new byte[0];
    private int next;
    private int end;
    private boolean inFrame;
    private boolean linked;
    private boolean blockChecksums;
    private boolean contentChecksum;
    private long saidSize;
    private long size;
    private int blockMax;

    Lz4FrameStream(InputStream in) throws IOException {
        super(in);
    }

    public int read() throws IOException {
        while (next == end) {
            if (!advance()) {
                return -1;
            }
        }
        return content[next++] & 0xFF;
    }

    public int read(byte[] bytes, int offset, int length) throws IOException {
        if (length == 0) {
            return 0;
        }
        while (next == end) {
            if (!advance()) {
                return -1;
            }
        }
        int count = Math.min(length, end - next);
        System.arraycopy(content, next, bytes, offset, count);
        next += count;
        return count;
    }

    public void resetState() {
        throw new UnsupportedOperationException("it reads forwards only");
    }

    /** Read a frame's header or one of its blocks, which may be empty; false at the end of the file. */
    private boolean advance() throws IOException {
        if (inFrame) {
            readBlock();
            return true;
        }
        int first = in.read();
        if (first < 0) {
            return false;
        }
        int magic = first | readByte() << 8 | readByte() << 16 | readByte() << 24;
        if (magic >>> 4 == SKIPPABLE) {
            passOver(readInt() & 0xFFFFFFFFL);
        } else if (magic == MAGIC) {
            readHeader();
        } else {
            throw new IOException("damaged lz4 file: no frame begins where one ends");
        }
        return true;
    }

    private void readHeader() throws IOException {
        byte[] header = new byte[10];
        readFully(header, 2);
        int flags = header[0] & 0xFF;
        int sizes = header[1] & 0xFF;
        if (flags >>> 6 != 1 || (flags & 2) != 0 || (sizes & 0x8F) != 0 || sizes >>> 4 < 4) {
            throw new IOException("damaged lz4 file: no version of its format has such a frame header");
        }
        if ((flags & 1) != 0) {
            throw new IOException("the lz4 file needs a dictionary");
        }
        int length = 2;
        saidSize = -1;
        if ((flags & 8) != 0) {
            byte[] said = new byte[8];
            readFully(said, 8);
            System.arraycopy(said, 0, header, 2, 8);
            length = 10;
            saidSize = 0;
            for (int i = 7; i >= 0; i--) {
                saidSize = saidSize << 8 | said[i] & 0xFF;
            }
        }
        if (readByte() != (hash.hash(header, 0, length, 0) >>> 8 & 0xFF)) {
            throw new IOException("damaged lz4 file: wrong checksum of a frame's header");
        }
        linked = (flags & 0x20) == 0;
        blockChecksums = (flags & 0x10) != 0;
        contentChecksum = (flags & 4) != 0;
        contentHash.reset();
        size = 0;
        blockMax = 1 << (2 * (sizes >>> 4) + 8);
        if (content.length < WINDOW + blockMax) {
            content = new byte[WINDOW + blockMax];
            compressed = new byte[blockMax];
        }
        next = 0;
        end = 0;
        inFrame = true;
    }

    private void readBlock() throws IOException {
        int header = readInt();
        if (header == 0) {
            endFrame();
            return;
        }
        int length = header & 0x7FFFFFFF;
        if (length > blockMax) {
            throw new IOException("damaged lz4 file: a block is larger than its frame's may be");
        }
        readFully(compressed, length);
        if (blockChecksums && readInt() != hash.hash(compressed, 0, length, 0)) {
            throw new IOException("damaged lz4 file: wrong checksum of a block");
        }
        int before = linked ? Math.min(end, WINDOW) : 0;
        System.arraycopy(content, end - before, content, 0, before);
        if (header < 0) {
            System.arraycopy(compressed, 0, content, before, length);
            end = before + length;
        } else {
            end = decompress(length, before);
        }
        next = before;
        size += end - next;
        if (contentChecksum) {
            contentHash.update(content, next, end - next);
        }
    }

    private void endFrame() throws IOException {
        if (contentChecksum && readInt() != contentHash.getValue()) {
            throw new IOException("damaged lz4 file: wrong checksum of a frame's content");
        }
        if (saidSize >= 0 && saidSize != size) {
            throw new IOException("damaged lz4 file: a frame's content is not as long as its header says");
        }
        inFrame = false;
    }

    /** Decompress a block to behind the first bytes of `content`; return where its content ends. */
    private int decompress(int length, int before) throws IOException {
        int limit = before + blockMax;
        int from = 0;
        int to = before;
        while (from < length) {
            int token = compressed[from++] & 0xFF;
            int literals = token >>> 4;
            if (literals == 15) {
                int more = 255;
                while (more == 255) {
                    more = compressed[within(from++, length)] & 0xFF;
                    literals += more;
                }
            }
            if (literals > length - from || literals > limit - to) {
                throw damagedBlock();
            }
            System.arraycopy(compressed, from, content, to, literals);
            from += literals;
            to += literals;
            if (from == length) {
                return to;
            }
            int back = compressed[from++] & 0xFF | (compressed[within(from++, length)] & 0xFF) << 8;
            int copied = token & 15;
            if (copied == 15) {
                int more = 255;
                while (more == 255) {
                    more = compressed[within(from++, length)] & 0xFF;
                    copied += more;
                }
            }
            copied += 4;
            if (back == 0 || back > to || copied > limit - to) {
                throw damagedBlock();
            }
            if (back >= copied) {
                System.arraycopy(content, to - back, content, to, copied);
                to += copied;
            } else { // it repeats what it writes
                for (int stop = to + copied; to < stop; to++) {
                    content[to] = content[to - back];
                }
            }
        }
        throw damagedBlock(); // its last bytes are no literals
    }

    private static int within(int at, int length) throws IOException {
        if (at >= length) {
            throw damagedBlock();
        }
        return at;
    }

    private static IOException damagedBlock() {
        return new IOException("damaged lz4 file: a block cannot be decompressed");
    }

    private int readInt() throws IOException {
        return readByte() | readByte() << 8 | readByte() << 16 | readByte() << 24;
    }

    private int readByte() throws IOException {
        int found = in.read();
        if (found < 0) {
            throw new EOFException("damaged lz4 file: it ends in the middle of a frame");
        }
        return found;
    }

    private void readFully(byte[] bytes, int length) throws IOException {
        for (int at = 0; at < length;) {
            int count = in.read(bytes, at, length - at);
            if (count < 0) {
                throw new EOFException("damaged lz4 file: it ends in the middle of a frame");
            }
            at += count;
        }
    }

    private void passOver(long length) throws IOException {
        byte[] skipped = new byte[4096];
        for (long left = length; left > 0;) {
            int count = (int) Math.min(left, skipped.length);
            readFully(skipped, count);
            left -= count;
        }
    }
}
