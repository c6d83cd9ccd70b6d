"""stable-baselines3: PPO on CartPole for 512 steps."""

import torch
from stable_baselines3 import PPO

torch.set_num_threads(1)
model = PPO(
    "MlpPolicy",
    "CartPole-v1",
    n_steps=128,
    batch_size=64,
    n_epochs=2,
    seed=0,
    device="cpu",
    verbose=0,
)
model.learn(512)
for name, parameter in model.policy.named_parameters():
    print(name, parameter.norm().item())
print("action", int(model.predict([0.0, 0.1, 0.02, -0.1], deterministic=True)[0]))
