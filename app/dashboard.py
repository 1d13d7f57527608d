"""Running the Streamlit pages inside this process, so that they share its open store."""

import importlib
import socket
from pathlib import Path

from streamlit import config
from streamlit.web import bootstrap

from rankscope.ingest.errors import UserError

# Whole, before any thread begins: plotly looks for pandas in sys.modules, and a collector's thread that is
# half through importing it (duckdb does so on its first query) would break it.
importlib.import_module("pandas")

DEFAULT_PORT = 8501
_MAIN = Path(__file__).with_name("main.py")
_PORTS_TRIED = 50


def choose_port(wanted: int | None) -> int:
    """`wanted` if it is free; without a wish, the first free one from 8501 on.

    Raises:
        UserError: the wanted one is taken.
    """
    if wanted is not None:
        if not 0 < wanted < 65536:
            raise UserError(f"{wanted} is no port: name one from 1 to 65535", status=2)
        if not _is_free(wanted):
            raise UserError(f"port {wanted} is in use: name another with --port, or close what runs there")
        return wanted
    for port in range(DEFAULT_PORT, DEFAULT_PORT + _PORTS_TRIED):
        if _is_free(port):
            return port
    raise UserError(f"no port from {DEFAULT_PORT} on is free: name one with --port")


def serve_pages(port: int, *, open_browser: bool, about: str) -> None:
    """Serve the pages on 127.0.0.1 until SIGINT or SIGTERM; prints one line with the address.

    Args:
        about: what is shown, for that line.
    """
    # As `streamlit run` does: the settings beside the script (app/.streamlit) are found by its path.
    config._main_script_path = str(_MAIN)
    options: dict[str, object] = {
        "server.port": port,
        "server.address": "127.0.0.1",
        "server.headless": not open_browser,
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": False,
        "logger.hideWelcomeMessage": True,
        "logger.level": "warning",
        "global.developmentMode": False,
    }
    bootstrap.load_config_options(options)
    print(f"http://127.0.0.1:{port} shows {about} (Ctrl-C ends it)", flush=True)
    bootstrap.run(str(_MAIN), False, [], options)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
