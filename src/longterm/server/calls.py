"""The table of calls: the path of each, its bodies, the objects that it is for, and the function that does it.

Every function below takes the object, the body of the request and the name of the caller, and returns the body of the
answer. It runs in the object's thread.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from longterm._base.messages import did_you_mean
from longterm.calibration import LiveIntervals
from longterm.errors import BrokenBoundError, InputError, UnaffordableError
from longterm.learners import Feedback
from longterm.money import Ledger, LivePacer, Router
from longterm.money.choosing.choice import Choice
from longterm.money.choosing.chooser import for_known_actions
from longterm.money.limit_changes import change_limits, limits_of
from longterm.play import LiveLearner
from longterm.server import requests as bodies
from longterm.server.requests import NONE
from longterm.server.service import ServedChooser

LOG = logging.getLogger("longterm.server")


class Call(NamedTuple):
    """A call.

    Parameters
    ----------
    path : str
        Its path, without the slash.
    body, answer : type
        Of the request and the answer.
    kinds : tuple of type
        The objects that it is for.
    work : callable
        From the object, the body and the caller's name to the answer.
    account : callable, optional
        From the object and the body to the account of a ledger whose money is concerned.
    is_admin : bool
        True: only callers that may administer may use it.
    """

    path: str
    body: type[bodies.Named]
    answer: type
    kinds: tuple[type, ...]
    work: Callable[[Any, Any, str], Any]
    account: Callable[[Any, Any], str] | None = None
    is_admin: bool = False


# --- choosers and routers ---------------------------------------------------------------------------------------


def act(found: ServedChooser | Router, body: bodies.Act, who: str) -> bodies.Acted:
    """Answer a request: the action of a chooser, or the model of a router. 402: nothing is affordable."""
    action, choice = _route(found, body) if isinstance(found, Router) else _choose(found, body)
    prices = choice.prices.tolist()
    return bodies.Acted(token=str(choice), action=action, probability=choice.probability, prices=prices)


def _choose(found: ServedChooser, body: bodies.Act) -> tuple[str, Choice]:
    if body.prompt is not None:
        raise InputError("prompt", "is an argument of routers, and this object is a chooser", "Give context")
    for name in ("costs", "bounds"):
        if isinstance(getattr(body, name), dict):
            raise InputError(
                name,
                "are given by name, but this object is a chooser and takes a list",
                f"Give a list in the order of {list(found.names)}",
            )
    wanted = found.names if body.allowed is None else body.allowed
    _require_actions(found.names, wanted)
    suitable = [action in wanted for action in found.names]

    def act(others: int) -> Choice:
        allowed = suitable + [False] * others
        return found.chooser.act(body.context, body.costs, body.bounds, allowed=allowed, key=body.key)  # type: ignore[arg-type]

    choice = for_known_actions(found.chooser, len(found.names), act)
    if choice.action is None:
        remedy = "Settle open choices, or raise the limit with longterm state set"
        raise UnaffordableError("allowed", f"has no action of {body.name!r} that is affordable", remedy)
    return found.name_of(choice.action), choice


def _route(found: Router, body: bodies.Act) -> tuple[str, Choice]:
    if body.prompt is None:
        raise InputError("prompt", "is missing", "Give the text that is routed")
    costs: dict[str, dict[str, float] | None] = {}
    for name in ("costs", "bounds"):
        given = getattr(body, name)
        if given is not None and not isinstance(given, dict):
            raise InputError(
                name,
                "are a list, but this object is a router and takes names",
                f"Give numbers by name, of {list(found.names)}",
            )
        _require_actions(found.names, given or ())
        costs[name] = given
    route = found.route(body.prompt, models=body.allowed, key=body.key, **costs)
    return route.model, route.choice


def _require_actions(known: Sequence[str], given: Any) -> None:
    for name in given:
        if name not in known:
            raise InputError(
                "action", f"{name!r} is not known{did_you_mean(name, known)}", f"Choose from {list(known)}"
            )


def settle(found: ServedChooser | Router | LivePacer, body: bodies.Settle, who: str) -> bodies.Done:
    """Report the outcome of a choice or a bid. Each part counts once."""
    if isinstance(found, LivePacer):
        if body.paid is None:
            raise InputError("paid", "is missing", "Give the payment: 0 if the auction was lost")
        said: dict[str, Any] = {"price": body.price, "won": body.won, "force": body.force}
        found.settle(body.token, body.paid, **said, position=_position(body))
    else:
        follows = body.cost_follows or (isinstance(found, Router) and body.cost is None)
        costs: dict[str, Any] = {"rewards": body.rewards, "costs": body.costs, "cost_follows": follows}
        found.chooser.settle(body.token, body.reward, body.cost, **costs, force=body.force, position=_position(body))
    return bodies.Done()


def _position(body: bodies.Settle | bodies.Tell | bodies.SettleHold) -> tuple[str, int] | None:
    return None if body.position is None else (body.position.partition, body.position.number)


def skip(found: Any, body: bodies.Round, who: str) -> bodies.Done:
    """Give up a round. The money held for a choice counts as spent; that of a bid is free again."""
    getattr(found, "chooser", found).skip(body.token)
    return bodies.Done()


# --- learners and intervals -------------------------------------------------------------------------------------


def ask(found: LiveLearner | LiveIntervals, body: bodies.Ask, who: str) -> bodies.AskReply:
    """Open a round of a learner or of intervals."""
    if isinstance(found, LiveLearner):
        token = found.ask(body.key)
        return bodies.AskReply(token=str(token), x=np.asarray(token.x).tolist())
    if body.prediction is None:
        raise InputError("prediction", "is missing", "Give the forecast that the interval surrounds")
    interval = found.ask(body.prediction, body.groups, body.key)
    lower, upper = (value if math.isfinite(value) else None for value in (interval.lower, interval.upper))
    return bodies.AskReply(token=str(interval), lower=lower, upper=upper)


def tell(found: LiveLearner | LiveIntervals, body: bodies.Tell, who: str) -> bodies.Done:
    """Give the feedback of a learner's round, or the outcome of an interval."""
    if isinstance(found, LiveLearner):
        try:
            found.tell(body.token, **_feedback(body), position=_position(body))
        except BrokenBoundError as error:
            remedy = "Check it. If it is right, skip the round: the learner's bounds do not cover it"
            raise InputError(error.argument, error.what, remedy, round=error.round) from error
    elif body.outcome is None:
        raise InputError("outcome", "is missing", "Give the observed value, or skip the round")
    else:
        found.tell(body.token, body.outcome, position=_position(body))
    return bodies.Done()


def _feedback(body: bodies.Tell) -> dict[str, Any]:
    """Return the arguments of a learner's tell."""
    if body.loss_gradient is None:
        return {"loss_parameters": body.loss_parameters, "constraint_parameters": body.constraint_parameters}
    for name in ("constraint", "constraint_gradient"):
        if getattr(body, name) is None:
            raise InputError(name, "is missing", "Give it with loss_gradient, evaluated at the round's x")
    names = ("loss_gradient", "constraint", "constraint_gradient", "loss")
    given: dict[str, Any] = {name: np.asarray(getattr(body, name)) for name in names if getattr(body, name) is not None}
    return {"feedback": Feedback(**given)}


# --- pacers and ledgers -----------------------------------------------------------------------------------------


def bid(found: LivePacer, body: bodies.Bid, who: str) -> bodies.Offered:
    """Bid for a request. The amount is 0 if no money is left."""
    offered = found.bid(body.value, body.key)
    return bodies.Offered(token=str(offered), amount=offered.amount, refused=offered.refused)


def hold(found: Ledger, body: bodies.HoldRequest, who: str) -> bodies.Held:
    """Hold an amount in an account. 402: it is not available."""
    held = found.hold(body.account, body.amount, body.key, group=body.group, seconds=body.seconds, who=who)
    return bodies.Held(held=held)


def settle_hold(found: Ledger, body: bodies.SettleHold, who: str) -> bodies.Done:
    """Replace a hold by the actual cost."""
    found.settle(body.key, body.actual, force=body.force, who=who, position=_position(body))
    return bodies.Done()


def release(found: Ledger, body: bodies.Release, who: str) -> bodies.Done:
    """Give back a hold."""
    found.release(body.key, who=who)
    return bodies.Done()


# --- what a person changes --------------------------------------------------------------------------------------


def change(
    found: Ledger | LivePacer | ServedChooser | Router, body: bodies.ChangeRequest, who: str
) -> bodies.SettingsReply | bodies.LimitsReply:
    """Change the settings of an account, the budget of a pacer, or the limits of a chooser or a router."""
    given = body.model_dump(exclude={"name", "account", "note"}, exclude_none=True)
    given = {name: None if one == NONE else one for name, one in given.items()}
    if isinstance(found, Ledger):
        if body.account is None:
            raise InputError("account", "is missing", "Name the account of the ledger")
        found.change(body.account, given, who=who, note=body.note)
        return _settings(found, body.account)
    limited: Any = getattr(found, "chooser", found)
    before = limits_of(limited)
    changes = {f"{body.account}.{name}" if body.account else name: one for name, one in given.items()}
    change_limits(limited, changes, who=who, note=body.note)
    after = limits_of(limited)
    changed = {name: (before[name], after[name]) for name in after if after[name] != before[name]}
    if changed:
        LOG.warning("%s: %s were changed (old, new) by %s. %s", body.name, changed, who, body.note)
    return bodies.LimitsReply(limits=after)


def _settings(found: Ledger, account: str) -> bodies.SettingsReply:
    balance = found.balance(account)
    return bodies.SettingsReply(**found.settings[account]._asdict(), spent=balance.spent, held=balance.held)


def reset(found: Ledger | LivePacer, body: bodies.Reset, who: str) -> bodies.SettingsReply | bodies.LimitsReply:
    """Set the money that counts as spent in an account, or a pacer, in its present period."""
    if isinstance(found, LivePacer):
        before = found.spent
        found.reset(body.spent, who=who, note=body.note)
        LOG.warning("%s: spent %g was reset to %g by %s. %s", body.name, before, body.spent, who, body.note)
        return bodies.LimitsReply(limits=limits_of(found), spent=found.spent)
    if body.account is None:
        raise InputError("account", "is missing", "Name the account of the ledger")
    if not isinstance(body.spent, int):
        raise InputError("spent", f"is {body.spent}", "Give a whole number of the ledger's units")
    found.reset(body.account, body.spent, who=who, note=body.note)
    return _settings(found, body.account)


def correct(found: Ledger | LivePacer | ServedChooser | Router, body: bodies.Correct, who: str) -> bodies.Corrected:
    """Replace the cost of a settled hold, choice or bid. Both costs stay in the record."""
    given: dict[str, Any] = {"correction": body.correction, "force": body.force}
    if not isinstance(found, Ledger):
        if body.token is None:
            raise InputError("token", "is missing", "Give the token of the choice or the bid")
        rounds: Any = getattr(found, "chooser", found)
        rounds.correct(body.token, float(body.actual), who=who, note=body.note, **given)
        return bodies.Corrected(new=body.actual)
    if body.key is None:
        raise InputError("key", "is missing", "Give the key of the hold")
    if not isinstance(body.actual, int):
        raise InputError("actual", f"is {body.actual}", "Give a whole number of the ledger's units")
    done = found.correct(body.key, body.actual, who=who, note=body.note, **given)
    return bodies.Corrected(account=done.account, old=done.old, new=done.new, moved=list(done.moved))


def force_release(
    found: Ledger | LivePacer | ServedChooser | Router, body: bodies.ForceRelease, who: str
) -> bodies.Done:
    """Give up an open round, a hold, or a lease whose holder died, also before its end. The record has who did it."""
    if isinstance(found, Ledger):
        if body.key is None:
            raise InputError("key", "is missing", "Give the key of the hold or the lease")
        found.release(body.key, force=True, who=who, note=body.note)
        return bodies.Done()
    if body.token is None:
        raise InputError("token", "is missing", "Give the token of the choice or the bid")
    rounds: Any = getattr(found, "chooser", found)
    rounds.skip(body.token, who=who, note=body.note)
    return bodies.Done()


def _named_account(found: Ledger, body: bodies.HoldRequest) -> str:
    return body.account


def _held_account(found: Ledger, body: bodies.SettleHold | bodies.Release) -> str:
    return found.account_of(body.key)


_CHOOSERS = (ServedChooser, Router)
_SETTINGS: Any = bodies.SettingsReply | bodies.LimitsReply
_LEARNERS = (LiveLearner, LiveIntervals)
_MONEY = (Ledger, LivePacer, *_CHOOSERS)
CALLS = (
    Call("act", bodies.Act, bodies.Acted, _CHOOSERS, act),
    Call("settle", bodies.Settle, bodies.Done, (*_CHOOSERS, LivePacer), settle),
    Call("skip", bodies.Round, bodies.Done, (*_CHOOSERS, LivePacer, *_LEARNERS), skip),
    Call("ask", bodies.Ask, bodies.AskReply, _LEARNERS, ask),
    Call("tell", bodies.Tell, bodies.Done, _LEARNERS, tell),
    Call("bid", bodies.Bid, bodies.Offered, (LivePacer,), bid),
    Call("hold", bodies.HoldRequest, bodies.Held, (Ledger,), hold, _named_account),
    Call("settle-hold", bodies.SettleHold, bodies.Done, (Ledger,), settle_hold, _held_account),
    Call("release", bodies.Release, bodies.Done, (Ledger,), release, _held_account),
    Call("set", bodies.ChangeRequest, _SETTINGS, _MONEY, change, is_admin=True),
    Call("reset", bodies.Reset, _SETTINGS, (Ledger, LivePacer), reset, is_admin=True),
    Call("correct", bodies.Correct, bodies.Corrected, _MONEY, correct, is_admin=True),
    Call("force-release", bodies.ForceRelease, bodies.Done, _MONEY, force_release, is_admin=True),
)
"""All POST paths."""
