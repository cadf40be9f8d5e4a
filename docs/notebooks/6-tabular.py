# %%
import numpy as np
import torch
from torch import nn

import recollect

NAMES = ["age", "height", "weight", "systolic", "diastolic", "pulse", "glucose", "cholesterol", "creatinine", "sodium", "potassium", "hemoglobin"]
