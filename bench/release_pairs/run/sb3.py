"""A short training of stable_baselines3 on a small linear system."""
import argparse, importlib.machinery, json, os, sys, types
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import gymnasium
import numpy as np
import torch

# stable_baselines3 imports these for logs and videos that nobody here uses.
for name in ("pandas", "matplotlib", "matplotlib.pyplot", "matplotlib.figure", "gymnasium.wrappers.monitoring"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)
sys.modules["matplotlib"].pyplot, sys.modules["matplotlib"].figure = sys.modules["matplotlib.pyplot"], sys.modules["matplotlib.figure"]
sys.modules["gymnasium.wrappers.monitoring"].video_recorder = types.SimpleNamespace(VideoRecorder=object)
sys.modules["pandas"].DataFrame = sys.modules["matplotlib.figure"].Figure = object

import stable_baselines3
from stable_baselines3.common.callbacks import BaseCallback

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--algorithm", default="PPO"); p.add_argument("--kwargs", default="{}")
p.add_argument("--timesteps", type=int, default=192); p.add_argument("--final", default=""); o = p.parse_args()
oracle.setup(0)


class Point(gymnasium.Env):
    """A point in the plane that is pushed; far from the origin costs."""

    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (4,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.time = self.np_random.uniform(-1, 1, 4).astype(np.float32), 0
        return self.state.copy(), {}

    def step(self, action):
        self.state[2:] = 0.9 * self.state[2:] + 0.1 * action
        self.state[:2] += 0.1 * self.state[2:]
        self.time += 1
        return self.state.copy(), -float(np.abs(self.state[:2]).sum()), False, self.time >= 25, {}


class Show(BaseCallback):
    def _on_step(self):
        return True

    def _on_rollout_start(self):
        values = {k: v for k, v in self.logger.name_to_value.items() if k.endswith("loss")}
        if values:
            print("step", self.num_timesteps, "loss", repr(sorted((k, float(v)) for k, v in values.items())), flush=True)


model = getattr(stable_baselines3, o.algorithm)("MlpPolicy", Point(), seed=0, device="cpu", policy_kwargs={"net_arch": [16, 16]}, **json.loads(o.kwargs))
with oracle.record(o.dump):
    model.learn(o.timesteps, callback=Show(), log_interval=None if o.algorithm != "PPO" else 1000)
if o.final:
    torch.save((model.policy.state_dict(), model.policy.optimizer.state_dict()), o.final)
