"""The 62 printed values of document 001, experiments 1 to 6, as they were printed; models by their key in solar_glm."""

import itertools

MOE_PAIRS = tuple(itertools.combinations(("solar", "glm", "phi", "mixtral"), 2))

LAYER_0 = {
    "solar": {10: 0.3731, 20: 0.3773, 30: 0.3771, 40: 0.3761, "mean": 0.3759},
    "glm": {10: 0.3758, 20: 0.3757, 30: 0.3773, 40: 0.3790, "mean": 0.3769},
}
NEIGHBOURS = {
    "solar": {(10, 20): 0.9882, (20, 30): 0.9960, "mean": 0.9921},
    "glm": {(10, 20): 0.9982, (20, 30): 0.9976, "mean": 0.9979},
}
LAYER_10 = dict(zip(MOE_PAIRS, (0.9811, 0.9776, 0.9408, 0.9881, 0.9497, 0.9465), strict=True))
BY_LAYER = {5: (0.9432, 0.0063), 10: (0.9639, 0.0187), 15: (0.9800, 0.0097)}
BY_LAYER |= {20: (0.9897, 0.0022), 25: (0.9889, 0.0039), 30: (0.9710, 0.0195)}
BY_LAYER_ALL = (0.9728, 0.0202, 0.0161)
GROUPS = {"MoE and dense": (0.9722, 0.0178), "dense": (0.9738, 0.0183)}
METRICS = {
    (("solar", 10), ("glm", 10)): (0.9811, 0.0092, 17.1803),
    (("solar", 10), ("phi", 10)): (0.9776, 0.0006, 6.4785),
    (("glm", 10), ("mixtral", 10)): (0.9497, -0.0057, 75.2530),
    (("solar", 10), ("solar", 20)): (0.9882, 0.4567, 6.0495),
    (("glm", 10), ("glm", 20)): (0.9982, 0.7720, 9.9148),
    (("solar", 0), ("solar", 10)): (0.3731, 0.0418, 14.5038),
    (("glm", 0), ("glm", 10)): (0.3758, 0.0521, 31.2930),
}
