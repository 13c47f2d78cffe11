"""Names of OpenTelemetry's conventions for generative AI that spans and metrics of agents have.

The one table of them: a test compares it with the constants of `opentelemetry-semantic-conventions`. They are
written here because that package keeps them under a private path, and marks them as moved.
"""

from __future__ import annotations

from typing import Final

# Operations.
INVOKE_WORKFLOW: Final = "invoke_workflow"
INVOKE_AGENT: Final = "invoke_agent"
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
OPERATIONS: Final = (INVOKE_WORKFLOW, INVOKE_AGENT, CHAT, EXECUTE_TOOL)

# Attributes, by the name of their constant.
ATTRIBUTES: Final = {
    "GEN_AI_OPERATION_NAME": "gen_ai.operation.name",
    "GEN_AI_WORKFLOW_NAME": "gen_ai.workflow.name",
    "GEN_AI_AGENT_NAME": "gen_ai.agent.name",
    "GEN_AI_CONVERSATION_ID": "gen_ai.conversation.id",
    "GEN_AI_PROVIDER_NAME": "gen_ai.provider.name",
    "GEN_AI_REQUEST_MODEL": "gen_ai.request.model",
    "GEN_AI_RESPONSE_MODEL": "gen_ai.response.model",
    "GEN_AI_RESPONSE_FINISH_REASONS": "gen_ai.response.finish_reasons",
    "GEN_AI_USAGE_INPUT_TOKENS": "gen_ai.usage.input_tokens",
    "GEN_AI_USAGE_OUTPUT_TOKENS": "gen_ai.usage.output_tokens",
    "GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS": "gen_ai.usage.cache_read.input_tokens",
    "GEN_AI_TOOL_NAME": "gen_ai.tool.name",
    "GEN_AI_TOOL_CALL_ID": "gen_ai.tool.call.id",
    "GEN_AI_TOKEN_TYPE": "gen_ai.token.type",
    # Only with capture_content.
    "GEN_AI_SYSTEM_INSTRUCTIONS": "gen_ai.system_instructions",
    "GEN_AI_INPUT_MESSAGES": "gen_ai.input.messages",
    "GEN_AI_OUTPUT_MESSAGES": "gen_ai.output.messages",
    "GEN_AI_TOOL_CALL_ARGUMENTS": "gen_ai.tool.call.arguments",
    "GEN_AI_TOOL_CALL_RESULT": "gen_ai.tool.call.result",
}

# Metrics, by the name of their constant.
METRICS: Final = {
    "GEN_AI_CLIENT_TOKEN_USAGE": "gen_ai.client.token.usage",
    "GEN_AI_CLIENT_OPERATION_DURATION": "gen_ai.client.operation.duration",
}

OPERATION: Final = ATTRIBUTES["GEN_AI_OPERATION_NAME"]
WORKFLOW: Final = ATTRIBUTES["GEN_AI_WORKFLOW_NAME"]
AGENT: Final = ATTRIBUTES["GEN_AI_AGENT_NAME"]
CONVERSATION: Final = ATTRIBUTES["GEN_AI_CONVERSATION_ID"]
PROVIDER: Final = ATTRIBUTES["GEN_AI_PROVIDER_NAME"]
REQUEST_MODEL: Final = ATTRIBUTES["GEN_AI_REQUEST_MODEL"]
RESPONSE_MODEL: Final = ATTRIBUTES["GEN_AI_RESPONSE_MODEL"]
FINISH_REASONS: Final = ATTRIBUTES["GEN_AI_RESPONSE_FINISH_REASONS"]
INPUT_TOKENS: Final = ATTRIBUTES["GEN_AI_USAGE_INPUT_TOKENS"]
OUTPUT_TOKENS: Final = ATTRIBUTES["GEN_AI_USAGE_OUTPUT_TOKENS"]
CACHED_TOKENS: Final = ATTRIBUTES["GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS"]
TOOL: Final = ATTRIBUTES["GEN_AI_TOOL_NAME"]
TOOL_CALL: Final = ATTRIBUTES["GEN_AI_TOOL_CALL_ID"]
TOKEN_TYPE: Final = ATTRIBUTES["GEN_AI_TOKEN_TYPE"]
SYSTEM: Final = ATTRIBUTES["GEN_AI_SYSTEM_INSTRUCTIONS"]
INPUT: Final = ATTRIBUTES["GEN_AI_INPUT_MESSAGES"]
OUTPUT: Final = ATTRIBUTES["GEN_AI_OUTPUT_MESSAGES"]
TOOL_ARGUMENTS: Final = ATTRIBUTES["GEN_AI_TOOL_CALL_ARGUMENTS"]
TOOL_RESULT: Final = ATTRIBUTES["GEN_AI_TOOL_CALL_RESULT"]
TOKEN_USAGE: Final = METRICS["GEN_AI_CLIENT_TOKEN_USAGE"]
DURATION: Final = METRICS["GEN_AI_CLIENT_OPERATION_DURATION"]
