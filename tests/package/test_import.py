"""What `import taeda` costs: modules, memory, and nothing that the user did not ask for."""

import json
import subprocess
import sys

MEASURE = """
import sys
before = set(sys.modules)
import taeda
new = sorted(set(sys.modules) - before)
rss = next(line for line in open("/proc/self/status") if line.startswith("VmRSS"))
import json
print(json.dumps({"modules": new, "rss_mb": int(rss.split()[1]) / 1024}))
"""


def measured():
    # -S keeps the modules of site's .pth files out of the count; the path is given instead.
    import taeda

    path = taeda.__path__[0].rsplit("/", 1)[0]
    code = f"import sys; sys.path.insert(0, {path!r})\n{MEASURE}"
    output = subprocess.check_output([sys.executable, "-S", "-c", code], text=True)
    return json.loads(output)


def test_modules_loaded():
    modules = measured()["modules"]
    assert len(modules) <= 60, modules
    for heavy in ("numpy", "typing", "inspect", "dataclasses", "asyncio", "multiprocessing",
                  "unittest", "pickle", "zipfile", "tempfile", "subprocess"):  # fmt: skip
        assert heavy not in modules, heavy


def test_memory():
    assert measured()["rss_mb"] <= 45


def test_subpackages_load_when_asked_for():
    code = (
        "import sys, taeda as torch\n"
        "assert 'taeda.optim' not in sys.modules and 'taeda.utils.data' not in sys.modules\n"
        "torch.optim.SGD, torch.utils.data.DataLoader, torch.nn.functional.relu\n"
        "assert 'taeda.optim' in sys.modules and 'taeda.utils.data' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
