"""Packing and balance: arrays in, arrays out."""

from sft_toolkit.packers.best_fit_decreasing import best_fit_decreasing
from sft_toolkit.packers.next_k_fit import next_k_fit
from sft_toolkit.packers.orders import AUTO, ORDERS, OrderChoice, choose_order, plan_for
from sft_toolkit.packers.packing import Packing
from sft_toolkit.packers.plan import FILLER, Plan, random_order
from sft_toolkit.packers.sorted_buffer import sorted_buffer
from sft_toolkit.packers.window_plan import window_plan, within_step

__all__ = [
    "AUTO",
    "FILLER",
    "ORDERS",
    "OrderChoice",
    "Packing",
    "Plan",
    "best_fit_decreasing",
    "choose_order",
    "next_k_fit",
    "plan_for",
    "random_order",
    "sorted_buffer",
    "window_plan",
    "within_step",
]
