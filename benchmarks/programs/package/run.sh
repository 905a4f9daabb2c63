set -e
export XLA_FLAGS=--xla_cpu_enable_fast_math=false
PYTHONPATH=src python -W ignore -m lab
