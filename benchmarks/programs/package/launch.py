import subprocess
import sys

for seed in range(2):
    code = f"import sys; sys.path.insert(0, 'src'); from lab.learning import train; train(12, {seed})"
    subprocess.run([sys.executable, '-u', '-X', 'dev', '-c', code], check=True)
