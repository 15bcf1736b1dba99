// One test of a rule. A rule that is refused is an answer too, with the place of its error.
import { ApiError, post } from "./api";
import { parseExact } from "./exact";

export async function testRule<T>(filter: string, action: string, message: string, signal: AbortSignal): Promise<T> {
  const rule: Record<string, unknown> = { filter: { sql: filter }, message: parseExact(message) };
  if (action.trim()) rule.action = action;
  const answer = await post("rules/test", rule, signal);
  const json = (await answer.json()) as T;
  if (answer.ok || answer.status === 400) return json;
  throw new ApiError(answer.status, String((json as { error?: string }).error));
}
