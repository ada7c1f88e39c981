import subprocess
import sys


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "kernelweave", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Usage: kernelweave" in done.stdout
    assert "label" in done.stdout
