"""stable-baselines3: DQN on the pole, soft actor-critic on the pendulum, with replay buffers."""

import torch
from stable_baselines3 import DQN, SAC

torch.manual_seed(0)
pole = DQN("MlpPolicy", "CartPole-v1", learning_starts=50, buffer_size=500, seed=0, device="cpu")
pole.learn(300)
values = pole.q_net(torch.tensor([[0.1, -0.2, 0.05, 0.3]]))
print("values", *values[0].tolist())
pendulum = SAC(
    "MlpPolicy", "Pendulum-v1", learning_starts=20, buffer_size=200, seed=0, device="cpu",
    policy_kwargs={"net_arch": [32, 32]},
)  # fmt: skip
pendulum.learn(60)
action, _ = pendulum.predict([0.5, 0.8, -0.1], deterministic=True)
print("action", *action, "entropy", pendulum.log_ent_coef.item())
