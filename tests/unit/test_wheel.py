"""What is installed is one package, `rankscope`, with its SQL and nothing beside it."""

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "*.egg-info", "build", "dist", "*.duckdb*", "*.spool", "*.demo", "*.so"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a source archive, and the wheel that was made from it."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    shutil.copytree(ROOT, tree, symlinks=True, ignore=LEFT_OUT)
    shutil.copytree(ROOT / "app" / ".streamlit", tree / "app" / ".streamlit")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", tree]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "dist"


def names_in_wheel(built: Path) -> list[str]:
    (wheel,) = built.glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


def test_wheel_has_one_top_level_package(built: Path) -> None:
    tops = {name.split("/")[0] for name in names_in_wheel(built)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"rankscope"}


def test_wheel_has_every_file_the_code_reads(built: Path) -> None:
    wanted = set()
    for folder in ("app", "ingest", "analytics", "emulation", "sample_data"):
        for path in (ROOT / folder).rglob("*"):
            if (
                path.suffix in {".py", ".sql", ".toml", ".css", ".js", ".woff2", ".png", ".pth"}
                and path.is_file()
            ):
                wanted.add(f"rankscope/{path.relative_to(ROOT)}")
    assert wanted - set(names_in_wheel(built)) == set()


def test_source_archive_has_the_licence_and_the_schema(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "src/rankscope/ingest/schema.sql"} <= names


def test_wheel_records_without_any_dependency(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", "--no-deps", wheel],
        check=True,
    )
    program = (
        "import sys, rankscope, rankscope.ingest, rankscope.analytics, rankscope.emulation, rankscope.app\n"
        "rec = rankscope.init('spool', run='plain')\n"
        "with rec.step(): rec.scalar('loss', 1.0)\n"
        "rec.close()\n"
        "print(sorted({'duckdb', 'numpy', 'pyarrow', 'streamlit', 'torch'} & sys.modules.keys()))\n"
        "for name in ('app', 'ingest', 'analytics', 'emulation', 'sample_data'):\n"
        "    try: __import__(name)\n"
        "    except ModuleNotFoundError: continue\n"
        "    sys.exit(f'{name} is installed at the top')\n"
    )
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("RANKSCOPE", "PYTHON"))
    }
    done = subprocess.run(
        [python, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
    assert list((tmp_path / "spool" / "plain").glob("*.seg"))
