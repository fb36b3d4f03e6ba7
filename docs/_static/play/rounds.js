"use strict";
/* The rounds of three learners on one problem, as in longterm.problems.two_dimensional:
   f_t(x) = ½‖x − target_t‖² on the unit disc, g(x) = x₁ − ¼ ≤ 0. tests/docs/test_play.py compares them with Python. */

const PROBLEM = { radius: 1, diameter: 2, G: 2, D: 1.25, F: 2, sigma: 1, limit: 0.25 };
const LEAST = Math.sqrt(2.2250738585072014e-308); // the smallest divisor

const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
const add = (a, b, scale = 1) => [a[0] + scale * b[0], a[1] + scale * b[1]];
const times = (scale, a) => [scale * a[0], scale * a[1]];

/** Project onto the unit disc. */
function projectDisc(x) {
  const length = Math.hypot(x[0], x[1]);
  return length <= PROBLEM.radius ? x : times(PROBLEM.radius / length, x);
}

/** Project onto the disc intersected with the half-plane x₁ ≤ ¼: the best fixed decision for a mean target. */
function projectFeasible(x) {
  const inside = projectDisc(x);
  if (inside[0] <= PROBLEM.limit) return inside;
  const height = Math.sqrt(PROBLEM.radius ** 2 - PROBLEM.limit ** 2);
  return [PROBLEM.limit, Math.max(-height, Math.min(height, x[1]))];
}

/** A-OGD with the convex steps of Table 1 of the paper, or with constant steps {theta, eta, mu}. */
function primalDual(steps) {
  let x = [0, 0], multiplier = 0, t = 1;
  return {
    get x() { return x; },
    get multiplier() { return multiplier; },
    update(gradient) {
      const { theta, eta, mu } = steps(t);
      const value = x[0] - PROBLEM.limit;
      const descent = add(gradient, [multiplier, 0]);
      x = projectDisc(add(x, descent, -eta));
      multiplier = Math.max(0, multiplier + mu * (value - theta * multiplier));
      t += 1;
    },
  };
}

function aogd(beta) {
  const { diameter, G } = PROBLEM;
  return primalDual((t) => {
    const decay = t ** beta, theta = 3 * diameter * G / decay;
    return { theta, eta: diameter / (2 * G) / decay, mu: 1 / (theta * (t + 1)) };
  });
}

/** OGD of Mahdavi, Jin and Yang (2012) with one multiplier, for a known horizon. */
function mahdavi(horizon) {
  const { radius, G, D } = PROBLEM, need = 2 * G ** 2;
  const eta = radius ** 2 / (radius * Math.sqrt(need + 2 * D ** 2) * Math.sqrt(horizon));
  const delta = 2 * need / (1 + Math.sqrt(Math.max(0, 1 - 8 * need * eta ** 2)));
  return primalDual(() => ({ theta: eta * delta, eta, mu: eta }));
}

/** The shortest horizon for which convex OGD's δ exists. */
function shortestHorizon() {
  const { radius, G, D } = PROBLEM, need = 2 * G ** 2;
  return Math.max(1, Math.ceil(8 * need * radius ** 4 / (radius ** 2 * (need + 2 * D ** 2)) * (1 - 1e-12)));
}

/** Adapt-ML-Prod: weights of experts from their losses, with a range learned by clipping. */
function adaptMLProd(count) {
  const log = Math.log(count);
  let logs = Array(count).fill(0), squares = Array(count).fill(0), rates = Array(count).fill(0), reach = 0;
  let weights = Array(count).fill(1 / count);
  return {
    get weights() { return weights; },
    update(losses) {
      const scope = Math.max(reach, ...losses.map(Math.abs)), divisor = Math.max(scope, LEAST), least = divisor ** 2;
      const gains = losses.map((loss) => (reach / -divisor) * loss);
      squares = squares.map((square, k) => square + gains[k] ** 2);
      const after = squares.map((square) => Math.sqrt(log / Math.max(square + least, 4 * log * least)));
      logs = logs.map((value, k) => {
        const ratio = (reach > 0 ? rates[k] : after[k]) / after[k];
        return (value + Math.log1p(rates[k] * gains[k])) / ratio;
      });
      const powers = logs.map((value, k) => after[k] * Math.exp(value));
      const total = powers.reduce((sum, power) => sum + power, 0);
      weights = powers.map((power) => power / total);
      [rates, reach] = [after, scope];
    },
  };
}

/** Hedged cuts with its defaults: experts with four step sizes and one with steps 1/(σt), cut by the known g. */
function hedgedCuts() {
  const factors = [0.5, 0.125, 0.03125, 0.0078125, 0], curved = 4, mostCuts = 30, tolerance = 0.005;
  const { diameter, sigma, limit } = PROBLEM, meta = adaptMLProd(factors.length);
  const normal = [1, 0];
  let x = [0, 0], t = 1, sum = 0, experts = factors.map(() => [0, 0]);

  const excessOf = (y) => Math.max(y[0] - limit, 0);

  /** Project y onto the half-plane and {z : ⟨b, z − y⟩ ≤ 0} together. */
  function projectWithin(y, b) {
    const excess = excessOf(y), bSquare = dot(b, b), product = dot(normal, b);
    const determinant = bSquare - product ** 2;
    const both = product < 0 && determinant > 1e-9 * bSquare;
    const along = excess * (both ? bSquare : 1) / (both ? determinant : 1);
    const back = both ? -excess * product / determinant : 0;
    return add(add(y, normal, -along), b, -back);
  }

  return {
    get x() { return x; },
    multiplier: null,
    update(gradient) {
      sum += dot(gradient, gradient);
      const away = experts.map((expert) => add(expert, x, -1));
      meta.update(away.map((one) => dot(one, gradient)));
      const weights = meta.weights, root = Math.sqrt(Math.max(sum, LEAST));
      const points = away.map((one, k) => {
        const share = k === curved ? 1 / t : 0;
        const moved = add(times(1 - share, one), gradient, -(factors[k] * (diameter / root) + share / sigma));
        return add(x, moved);
      });
      let hadExcess = points.map((y) => excessOf(y) > 0);
      let outside = points.map((y) => add(y, normal, -excessOf(y)));
      let inside = outside.map(projectDisc);
      const needed = () => weights.reduce((all, p, k) => all + p * excessOf(inside[k]), 0) > tolerance * diameter / Math.sqrt(t);
      for (let cut = 1; cut < mostCuts && needed(); cut += 1) {
        const before = inside;
        const next = inside.map((y, k) => {
          const gap = add(outside[k], y, -1);
          const b = dot(gap, gap) > (1e-12 * diameter) ** 2 ? gap : hadExcess[k] ? normal : [0, 0];
          return projectWithin(y, b);
        });
        hadExcess = before.map((y) => excessOf(y) > 0);
        outside = next;
        inside = next.map(projectDisc);
      }
      experts = inside;
      x = experts.reduce((mean, expert, k) => add(mean, expert, weights[k]), [0, 0]);
      t += 1;
    },
  };
}

/** Theorem 1 of the paper for A-OGD after T rounds: corrected, or as printed. */
function theorem1(T, beta, printed) {
  const { radius, diameter, G, D, F } = PROBLEM, RG = diameter * G / 2;
  const up = T ** beta, down = T ** (1 - beta) / (1 - beta);
  const regret = printed
    ? (RG + D ** 2 / (6 * beta * RG)) * up + 2 * RG * down
    : radius ** 2 * G / diameter + 2 * RG * (up - 1) + RG * down + D ** 2 * up / (6 * beta * RG);
  const weight = printed ? 12 * RG * down : 6 * RG * (down + 1);
  return { regret, violation: Math.sqrt(2 * weight * Math.max(regret + F * T, 0)) };
}

/** A small random number generator (mulberry32), so that a seed gives the same stream in every browser. */
function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  };
}

/** The targets of T rounds, from two points a and b of the disc. */
function makeTargets(kind, T, a, b, seed = 1) {
  const random = randomNumbers(seed);
  return Array.from({ length: T }, (_, i) => {
    if (kind === "reversal") return i < 0.75 * T ? a : b;
    if (kind === "alternating") return i % 2 === 0 ? a : b;
    if (kind === "circle") {
      const angle = 6 * Math.PI * i / T, length = Math.hypot(a[0], a[1]), start = Math.atan2(a[1], a[0]);
      return [length * Math.cos(start + angle), length * Math.sin(start + angle)];
    }
    const centre = random() < 0.5 ? a : b, angle = 2 * Math.PI * random(), spread = 0.3 * random();
    return projectDisc([centre[0] + spread * Math.cos(angle), centre[1] + spread * Math.sin(angle)]);
  });
}

/** Play all targets with one learner: decisions, regret, violation and multiplier after every round. */
function playRounds(learner, targets) {
  const trace = { x: [], regret: [], violation: [], multiplier: [] };
  let loss = 0, violation = 0, mean = [0, 0], squares = 0;
  targets.forEach((target, i) => {
    const x = learner.x, gap = add(x, target, -1), t = i + 1;
    loss += dot(gap, gap) / 2;
    violation += x[0] - PROBLEM.limit;
    mean = add(times(i / t, mean), target, 1 / t);
    squares += dot(target, target);
    const best = projectFeasible(mean);
    const bestLoss = (t * dot(best, best) - 2 * t * dot(best, mean) + squares) / 2;
    trace.x.push(x);
    trace.multiplier.push(learner.multiplier);
    learner.update(gap);
    trace.regret.push(loss - bestLoss);
    trace.violation.push(violation);
  });
  return trace;
}

const LEARNERS = {
  "A-OGD": (settings) => aogd(settings.beta),
  "OGD (Mahdavi et al. 2012)": (settings) => mahdavi(settings.rounds),
  "Hedged cuts": () => hedgedCuts(),
};
