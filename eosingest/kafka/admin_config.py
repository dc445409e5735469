"""Builds the admin client's TLS and SASL settings; maps connection failures to errors.

Used by kafka_python.py. Certificates, keys and a token are loaded before the client is created: its network thread would
only retry until its timeout.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import kafka.errors as kafka_errors

from eosingest.errors import EosingestError, FatalError, TemporaryError
from eosingest.host.interruptible import in_thread
from eosingest.kafka import tls
from eosingest.kafka.broker_versions import TOO_OLD_HINT
from eosingest.kafka.config import ClientSettings, kafka_python, mechanism_of
from eosingest.kafka.diagnose import Reason, reasons, servers_of
from eosingest.kafka.librdkafka import refuses_login
from eosingest.kafka.oauth import TokenProvider
from eosingest.kafka.oidc import ENDPOINT

_LOGIN_S = 5.0
_LOGINS = {
    "OAUTHBEARER": f"the broker does not accept the token from {ENDPOINT}: check that issuer, audience and scope are"
    " those that the broker expects",
}
_PASSWORD = "check sasl.username and sasl.password, and that the broker knows this user for this sasl.mechanism"


def configuration(settings: ClientSettings, check: Callable[[], None]) -> dict[str, object]:
    """Return kafka-python's configuration, and as needed the TLS context and the token provider, which has a token already.

    Raises SpecError for files that cannot be used, and what `TokenProvider.token` raises. `check` ends the wait by raising.
    """
    config = kafka_python(settings)
    protocol = str(config.get("security_protocol", ""))
    if protocol.endswith("SSL"):
        config["ssl_context"] = tls.context(settings.properties)
    if protocol.startswith("SASL") and mechanism_of(settings.properties) == "OAUTHBEARER":
        provider = TokenProvider(settings.properties)
        in_thread(provider.token, check, "kafka-token")
        config["sasl_oauth_token_provider"] = provider
    return config


def why_unreachable(settings: ClientSettings, check: Callable[[], None]) -> EosingestError | None:
    """Return why no broker answers: FatalError if a retry helps with no server of the list, else TemporaryError.

    None if no server of the list says anything.
    """
    found = in_thread(lambda: reasons(settings), check, "kafka-reasons")
    if not found:
        return None
    if not all(reason.lasting for reason in found) and in_thread(
        lambda: _refuses_login(settings), check, "kafka-login"
    ):
        return _login_refused(settings)
    return _unreachable(found)


def refusal(settings: ClientSettings, check: Callable[[], None]) -> EosingestError | None:
    """Return the error if every server of the list is a broker that refuses the connection; no longer wait changes that."""
    found = in_thread(lambda: reasons(settings), check, "kafka-reasons")
    if len(found) < len(servers_of(settings)) or not all(reason.answered for reason in found):
        return None
    if all(reason.lasting for reason in found):
        return _unreachable(found)
    if len(found) == 1 and in_thread(lambda: _refuses_login(settings), check, "kafka-login"):
        return _login_refused(settings)
    return None


def _unreachable(found: Sequence[Reason]) -> EosingestError:
    lasting = all(reason.lasting for reason in found)
    text = "; ".join(reason.text for reason in found)
    hint = next((reason.hint for reason in found if reason.lasting == lasting), "")
    if lasting:
        return FatalError(
            f"no broker can be reached: {text}", code="broker-unreachable", hint=f"nothing was sent; {hint}"
        )
    return TemporaryError(
        f"no answer from the brokers: {text}",
        code="broker-unreachable",
        hint=f"nothing was sent; {hint}; then run again",
    )


def _refuses_login(settings: ClientSettings) -> bool:
    """Try the login with the other client: kafka-python, refused while it connects, retries until its timeout."""
    is_login = settings.properties.get("security.protocol", "").upper().startswith("SASL")
    return is_login and refuses_login(settings, _LOGIN_S)


def _login_refused(settings: ClientSettings) -> FatalError:
    mechanism = mechanism_of(settings.properties)
    return FatalError(
        f"{settings.bootstrap_servers}: the broker refuses the login by {mechanism}",
        code="login-refused",
        hint=f"nothing was sent; {_LOGINS.get(mechanism, _PASSWORD)}; then run again",
    )


def refused(doing: str, error: kafka_errors.KafkaError) -> FatalError:
    """Make the error for a refusal that no retry would change."""
    if isinstance(error, kafka_errors.IncompatibleBrokerVersion):
        return FatalError(
            f"{doing}: the brokers do not support this request ({named_once(error)})",
            code="broker-too-old",
            hint=TOO_OLD_HINT,
        )
    if not isinstance(error, kafka_errors.AuthorizationError):
        return FatalError(f"{doing}: {named_once(error)}", code="broker-refused")
    return FatalError(
        f"{doing}: the right to do so is missing ({named_once(error)})",
        code="broker-refused",
        hint="committed records are kept; grant the right to the user that logs in (kafka-acls --add), then run again",
    )


# Raised by kafka-python, in addition to its own errors, for an answer that it cannot read.
NOT_UNDERSTOOD = (ValueError, LookupError, TypeError, AttributeError, AssertionError, struct.error, RuntimeError)


def not_understood(doing: str, error: Exception) -> EosingestError:
    """Make the error for an answer that kafka-python cannot read, for example of a newer Kafka."""
    if isinstance(error, RuntimeError):  # no active controller was found, or the client was closed meanwhile
        return TemporaryError(
            f"{doing}: {named_once(error)}",
            code="broker-unreachable",
            hint="committed records are kept; check that the brokers and controllers are up, then run again",
        )
    return FatalError(
        f"{doing}: the brokers gave an answer that cannot be read ({named_once(error)})",
        code="broker-not-understood",
        hint="committed records are kept; a newer Apache Kafka may need a newer eosingest: install it, then run again",
    )


def named_once(error: BaseException) -> str:
    """Return class and text of an error; kafka-python's texts begin with their class."""
    name, text = type(error).__name__, str(error)
    return text if text.startswith(name) else f"{name}: {text}"
