"""The bodies of requests and answers. Pydantic validates them, and the OpenAPI page shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_NUMBERS = 100_000
NONE = "none"
"""The value of a limit that is removed; null leaves it as it is."""
Name = Annotated[str, Field(min_length=1, max_length=60, description="The object, as in the service's file.")]
Key = Annotated[str | None, Field(max_length=200, description="An idempotency key: a retry returns the first answer.")]
Text = Annotated[str, Field(min_length=1, max_length=200)]
RoundToken = Annotated[str, Field(max_length=100, description="The token of the round.")]
Numbers = Annotated[list[float], Field(max_length=MOST_NUMBERS)]
Table = Annotated[list[Numbers] | Numbers, Field(max_length=MOST_NUMBERS)]
Note = Annotated[str, Field(max_length=1000, description="The reason, for the record.")]
Force = Annotated[bool, Field(description="Accept a cost above 100 times the amount held.")]
Groups = Annotated[list[Text], Field(max_length=100)]


class Body(BaseModel):
    """A body: unknown keys, NaN and infinity are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class MessagePosition(Body):
    """The place of a message in a queue. A message counts once, however often the queue delivers it."""

    partition: Annotated[str, Field(min_length=1, max_length=200)]
    number: int = Field(description="It grows along the partition.")


class Named(Body):
    """A body that names an object."""

    name: Name


class Act(Named):
    """A request to a chooser (`context`) or a router (`prompt`)."""

    context: Numbers = []
    prompt: str | Numbers | None = None
    costs: Table | dict[str, float] | None = Field(default=None, description="Of each action; by name for a router.")
    bounds: Table | dict[str, float] | None = Field(default=None, description="The largest costs.")
    allowed: Annotated[list[Text], Field(min_length=1, max_length=10_000)] | None = Field(
        default=None, description="Actions by name."
    )
    key: Key = None


class Acted(BaseModel):
    """The answer to a request."""

    token: str = Field(description="Give it to /settle or /skip.")
    action: str
    probability: float = Field(description="With which the action was drawn, for off-policy estimates.")
    prices: list[float] = Field(description="In reward per unit of each budget's money.")


class Settle(Named):
    """The outcome of a choice (`reward`, `cost`) or of a bid (`paid`, `price`, `won`)."""

    token: RoundToken
    reward: float | None = None
    cost: float | Numbers | None = None
    rewards: Numbers | None = Field(default=None, description="Of all actions, if they are known.")
    costs: Table | None = None
    cost_follows: bool = Field(default=False, description="The cost will be reported by a later call.")
    paid: float | None = None
    price: float | None = None
    won: bool | None = None
    force: Force = False
    position: MessagePosition | None = None


class Round(Named):
    """A round that is given up."""

    token: RoundToken


class Ask(Named):
    """A request to a learner, or to intervals (`prediction`, `groups`)."""

    prediction: float | None = None
    groups: Groups = []
    key: Key = None


class AskReply(BaseModel):
    """The decision of a learner, or an interval."""

    token: str = Field(description="Give it to /tell or /skip.")
    x: Any = Field(default=None, description="The decision of a learner.")
    lower: float | None = Field(default=None, description="Of an interval; null is unbounded.")
    upper: float | None = None


class Tell(Named):
    """The feedback of a learner's round, evaluated at its x or as the problem's parameters, or an `outcome`."""

    token: RoundToken
    outcome: float | None = None
    loss_gradient: Numbers | None = None
    constraint: float | None = None
    constraint_gradient: Numbers | None = None
    loss: float | None = None
    loss_parameters: Annotated[list[float | Table], Field(max_length=100)] | None = None
    constraint_parameters: Annotated[list[float | Table], Field(max_length=100)] = []
    position: MessagePosition | None = None


class Bid(Named):
    """A request to a pacer."""

    value: float
    key: Key = None


class Offered(BaseModel):
    """A bid."""

    token: str = Field(description="Give it to /settle or /skip.")
    amount: float
    refused: bool = Field(default=False, description="The amount is 0 because no money is left.")


class HoldRequest(Named):
    """An amount to hold in an account."""

    account: Text
    amount: int = Field(description="The largest cost, in the ledger's unit.")
    key: Text = Field(description="Names the hold. A repeated call has no effect.")
    group: Text | None = Field(default=None, description="The model, by which calibrated holds are estimated.")
    seconds: float | None = Field(default=None, description="The hold expires after this time.")


class Held(BaseModel):
    """A hold."""

    held: int = Field(description="In the ledger's unit.")


class SettleHold(Named):
    """The actual cost of a hold."""

    key: Text
    actual: int
    force: Force = False
    position: MessagePosition | None = None


class Release(Named):
    """A hold to give back."""

    key: Text


class ChangeRequest(Named):
    """New settings of an account, a pacer, a chooser or a router. What is left out stays."""

    account: Text | None = Field(default=None, description="Of a ledger; or a budget, of a chooser with several.")
    limit: int | float | None = Field(default=None, description="Of an account, in whole units; or of a budget.")
    reserve: int | Literal["none"] | None = None
    period: Literal["day", "week", "month", "none", ""] | None = None
    timezone: Text | None = None
    rate: int | None = None
    budget: float | None = Field(default=None, description="Of a pacer.")
    horizon: int | None = None
    per_request: float | None = Field(default=None, description="The ceiling of a router or a chooser.")
    credit: float | None = None
    bank: float | Literal["none"] | None = None
    least_quality: float | None = Field(default=None, description="Of a router without a ceiling.")
    note: Note = ""


class Reset(Named):
    """The money that counts as spent in an account, or a pacer, from now on."""

    account: Text | None = None
    spent: int | float = 0
    note: Note = ""


class Correct(Named):
    """The right cost of a settled hold (`key`), or of a choice or a bid (`token`)."""

    key: Text | None = None
    token: RoundToken | None = None
    actual: int | float
    correction: Key = None
    force: Force = False
    note: Note = ""


class ForceRelease(Named):
    """A hold or a lease (`key`), or an open choice or bid (`token`), that is given up."""

    key: Text | None = None
    token: RoundToken | None = None
    note: Note = ""


class SettingsReply(BaseModel):
    """An account."""

    limit: int
    parent: str | None = None
    period: str | None = None
    timezone: str | None = None
    rate: int | None = None
    reserve: int | None = None
    spent: int
    held: int


class LimitsReply(BaseModel):
    """What can be changed of a pacer, a chooser or a router, with its present values; and the money of a pacer."""

    limits: dict[str, Any]
    spent: float | None = None


class Corrected(BaseModel):
    """A correction; of a ledger, with the account and the cost before."""

    account: str | None = None
    old: int | None = None
    new: int | float
    moved: list[str] = Field(default=[], description="Accounts that were corrected in a later period.")


class Done(BaseModel):
    """The call took effect."""

    done: bool = True


class ErrorBody(BaseModel):
    """An error."""

    code: str = Field(description="A short text for programs.")
    message: str
    argument: str | None = None
    remedy: str


class Failure(BaseModel):
    """The body of every answer but 200."""

    error: ErrorBody
