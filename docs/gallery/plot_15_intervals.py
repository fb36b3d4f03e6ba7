"""
90 % intervals around any forecast
==================================

Assumes the extra `experiments` for the figures. A shop forecasts its daily sales by the same day of last week. Sales
jump when a second shop opens, and vary three times as much on Saturdays. The intervals must hold the outcome on 90 % of
all days, and on 90 % of the Saturdays.
"""

# %%
# The series has four years of days. The forecast does not know about the jump in the middle.
import matplotlib.pyplot as plt
import numpy as np

from longterm.calibration import Intervals

rng = np.random.default_rng(0)
days = np.arange(4 * 365)
saturday = days % 7 == 5
level = np.where(days < 730, 100.0, 180.0) + 0.02 * days + 20.0 * saturday
sales = level + rng.standard_t(4, len(days)) * np.where(saturday, 12.0, 4.0) * np.where(days < 730, 1.0, 1.8)
forecast = np.concatenate([np.full(7, 100.0), sales[:-7]])

# %%
# ``ask`` returns the interval before the day, and ``tell`` gives the outcome after it. A group is a name.
intervals, limits = Intervals(confidence_level=0.9), []
for day in days:
    interval = intervals.ask(forecast[day], ["Saturday"] if saturday[day] else ["other days"])
    limits.append((interval.lower, interval.upper))
    intervals.tell(interval, sales[day])
for name, share in intervals.coverage.items():
    print(f"{name or 'all days':<12}{share:.1%}")

# %%
# The figure shows the weeks around the jump. The forecast is wrong for seven days, and all of them are missed. Then the
# intervals are wide enough, on Saturdays wider than on the other days.
shown = slice(700, 760)
lower, upper = np.array(limits).T
figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
axis.fill_between(days[shown], lower[shown], upper[shown], alpha=0.25, label="90 % interval")
inside = (lower <= sales) & (sales <= upper)
for covered, color, label in ((True, "black", "sales"), (False, "crimson", "missed")):
    chosen = days[shown][inside[shown] == covered]
    axis.plot(chosen, sales[chosen], ".", color=color, label=label)
axis.set(xlabel="day", ylabel="sales", title="A second shop opens on day 730")
axis.legend(frameon=False, loc="upper left")

# %%
# ``plot`` draws the rolling coverage by group, the width, and the sum of errors. The band is the certificate (Theorem 3).
figure = intervals.plot(window=200)
bound = intervals.bound()
print(
    f"misses above nominal {intervals.error['']:+.1f}, certified within {bound.lower[0]:.0f} and {bound.upper[0]:.0f}"
)

# %%
# Late outcomes, two-sided intervals, classifiers and thousands of series: :doc:`/guides/calibration`.
