"""A travel desk whose prompt, resource and resource template each ask two questions, the second about the first answer."""

from typing import Annotated

from pydantic import BaseModel

from bespeak import Elicit, MCPServer, Resolve

mcp = MCPServer("Trip desk", version="1.0.0")


class City(BaseModel):
    city: str


class District(BaseModel):
    district: str


async def ask_city() -> Elicit[City]:
    return Elicit("Which city do you visit?", City)


async def ask_district(city: Annotated[City, Resolve(ask_city)]) -> Elicit[District]:
    return Elicit(f"Which district of {city.city}?", District)


AnsweredCity = Annotated[City, Resolve(ask_city)]
AnsweredDistrict = Annotated[District, Resolve(ask_district)]


@mcp.prompt()
async def plan(days: str, city: AnsweredCity, district: AnsweredDistrict) -> str:
    """Plan a trip."""
    return f"Plan {days} days in {district.district}, {city.city}."


@mcp.resource("trip://today")
async def today(city: AnsweredCity, district: AnsweredDistrict) -> str:
    """The trip of today."""
    return f"Today: {district.district}, {city.city}."


@mcp.resource("trip://days/{day}")
async def on_day(day: int, city: AnsweredCity, district: AnsweredDistrict) -> str:
    """The trip of a day."""
    return f"Day {day}: {district.district}, {city.city}."
