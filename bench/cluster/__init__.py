"""Ray: starting or joining it, its nodes, and what processes on other nodes need."""

# Ray reads these when it is first imported, so they are set before any module of this package imports it.
import os

os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
os.environ.setdefault("TUNE_DISABLE_SIGINT_HANDLER", "1")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
# Of each of Ray's logs, the last 96 MiB are kept; Ray would keep 3 GiB.
os.environ.setdefault("RAY_ROTATION_MAX_BYTES", str(32 * 2**20))
os.environ.setdefault("RAY_ROTATION_BACKUP_COUNT", "2")
