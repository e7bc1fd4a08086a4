"""Where the health of a service is asked, and what counts as well."""

import http.server
import ssl
import threading
from pathlib import Path

import pytest

from core_broker.service.metrics import MetricsServer
from deploy.health_check import address, caudal_arguments, main
from tests.support.certificates import Authority


@pytest.mark.parametrize(
    "command,environment,url",
    [
        (["broker"], {}, "http://localhost:9404/health"),
        (["broker"], {"KAFKA_METRICS_LISTENER": "http://:19404"}, "http://localhost:19404/health"),
        (["registry"], {}, "http://localhost:8081/health"),
        (["registry", "--set", "listeners=http://127.0.0.1:18081"], {}, "http://127.0.0.1:18081/health"),
        (
            ["registry"],
            {"SCHEMA_REGISTRY_LISTENERS": "https://0.0.0.0:8443,http://:1"},
            "https://localhost:8443/health",
        ),
        (["connect"], {"CONNECT_LISTENERS": "http://[::1]:18083"}, "http://[::1]:18083/health"),
        (["rest-proxy"], {"KAFKA_LISTENERS": "PLAINTEXT://:1"}, "http://localhost:8082/health"),
    ],
)
def test_a_service_is_asked_where_its_settings_say(command: list[str], environment: dict[str, str], url: str) -> None:
    assert address(command, environment) == url


def test_a_service_is_asked_where_its_file_says(tmp_path: Path) -> None:
    (file := tmp_path / "server.properties").write_text("metrics.listener=http://10.0.0.1:9999\n")
    assert address(["broker", "--config", str(file)], {}) == "http://10.0.0.1:9999/health"


@pytest.mark.parametrize("command", [["brokers"], ["connect-worker"], ["broker", "--help"]])
def test_a_command_that_is_no_service_cannot_be_asked(command: list[str]) -> None:
    assert address(command, {}) is None


@pytest.mark.parametrize(
    "process,command",
    [
        (b"tini\0--\0caudal\0broker\0--set\0a=b\0", ["broker", "--set", "a=b"]),
        (b"/opt/caudal/bin/python\0/opt/caudal/bin/caudal\0registry\0", ["registry"]),
        (b"tini\0--\0spark-class\0org.apache.spark.deploy.master.Master\0", []),
    ],
)
def test_the_service_of_a_container_is_read_from_its_first_process(process: bytes, command: list[str]) -> None:
    assert caudal_arguments(process) == command


def test_a_service_that_is_healthy_has_exit_code_0() -> None:
    with MetricsServer("http://127.0.0.1:0", collect=lambda: ()) as server:
        assert server.url is not None
        listener = server.url.removesuffix("/metrics")
        assert main(["broker", "--set", f"metrics.listener={listener}"], {}) == 0


def test_a_service_that_is_not_healthy_is_reported_with_its_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with MetricsServer("http://127.0.0.1:0", collect=lambda: (), is_healthy=lambda: False) as server:
        assert server.url is not None
        listener = server.url.removesuffix("/metrics")
        assert main(["broker", "--set", f"metrics.listener={listener}"], {}) == 1
    assert "503" in capsys.readouterr().err


def test_waiting_ends_when_the_service_is_well() -> None:
    answers = iter([False, False, True])
    with MetricsServer("http://127.0.0.1:0", collect=lambda: (), is_healthy=lambda: next(answers)) as server:
        assert server.url is not None
        listener = server.url.removesuffix("/metrics")
        assert main(["--wait", "60", "broker", "--set", f"metrics.listener={listener}"], {}) == 0
    assert next(answers, None) is None


def test_a_service_that_does_not_run_is_not_healthy(capsys: pytest.CaptureFixture[str]) -> None:
    with MetricsServer("http://127.0.0.1:0", collect=lambda: ()) as server:
        assert server.url is not None
        listener = server.url.removesuffix("/metrics")
    assert main(["broker", "--set", f"metrics.listener={listener}"], {}) == 1
    assert "refused" in capsys.readouterr().err


class _Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("keys", [("ssl.keystore.location", ""), ("ssl.certificate.location", "ssl.key.location")])
def test_a_service_that_asks_for_certificates_is_shown_its_own(
    keys: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    authority = Authority()
    identity = authority.issue("CN=broker")
    both = identity.save(tmp_path / "both.pem")
    (chain := tmp_path / "tls.crt").write_text(identity.chain_pem)
    (key := tmp_path / "tls.key").write_text(identity.key_pem())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.maximum_version = ssl.TLSVersion.TLSv1_2  # a refusal is then part of the handshake
    tls.load_cert_chain(both)
    tls.load_verify_locations(authority.save(tmp_path / "ca.crt"))
    tls.verify_mode = ssl.CERT_REQUIRED
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Health) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        command = ["broker", "--set", f"metrics.listener=https://127.0.0.1:{server.server_address[1]}"]
        own = [f"{keys[0]}={chain if keys[1] else both}", *([f"{keys[1]}={key}"] if keys[1] else [])]
        answers = main(command, {}), main([*command, *(word for one in own for word in ("--set", one))], {})
        server.shutdown()
        thread.join()
    assert answers == (1, 0)
    assert "handshake failure" in capsys.readouterr().err


def test_an_unknown_service_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["brokers"], {}) == 2
    assert "broker|registry|rest-proxy|connect" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", "--config", str(tmp_path / "none.properties")], {}) == 2
    assert "none.properties" in capsys.readouterr().err
