"""LiteLLM's router with usage-based routing: one deployment with requests and tokens a minute."""

import asyncio
from typing import Any

import litellm
import time_machine
from driver import Admit, drive
from litellm import Router

BEGIN_S = 1_700_000_040
"""The beginning of a minute, by which it counts."""
SETTLE_S = 0.005
"""Its counters follow a call by a task of their own."""


def make(trace: dict[str, Any]) -> Admit:
    """A call goes if the router finds a deployment for it; the answer is at once."""
    litellm.suppress_debug_info = True
    clock = time_machine.travel(BEGIN_S, tick=False).start()
    loop = asyncio.new_event_loop()
    router = Router(
        model_list=[
            {
                "model_name": "model",
                "litellm_params": {
                    "model": "openai/model",
                    "api_key": "none",
                    "rpm": trace["requests_max"],
                    "tpm": trace["tokens_max"],
                },
            }
        ],
        routing_strategy="usage-based-routing-v2",
        enable_pre_call_checks=True,
        num_retries=0,
        disable_cooldowns=True,
    )

    async def take(amount: int) -> bool:
        answer = litellm.ModelResponse(
            choices=[{"message": {"role": "assistant", "content": "yes"}}],
            usage={"prompt_tokens": amount, "completion_tokens": 0, "total_tokens": amount},
        )
        messages = [{"role": "user", "content": "word " * amount}]
        try:
            await router.acompletion("model", messages=messages, mock_response=answer)
        except (litellm.RateLimitError, litellm.exceptions.ServiceUnavailableError, ValueError):
            return False
        await asyncio.sleep(SETTLE_S)
        return True

    def admit(now_ms: int, amount: int) -> bool:
        clock.move_to(BEGIN_S + now_ms / 1_000)
        return loop.run_until_complete(take(amount))

    return admit


if __name__ == "__main__":
    drive(make)
