INSERT INTO run (run_id, began_ns, planned_ranks, command, framework, backend, device_kind, origin)
VALUES ($run, $begin, $ranks, 'torchrun train.py', 'torch 2.13.0', 'nccl', 'cuda NVIDIA H100', 'simulated')
