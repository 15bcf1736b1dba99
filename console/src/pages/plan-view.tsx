// A plan of the broker: what would be made, changed and deleted, and what it refuses.
import { Badge, Empty, Failure } from "../ui";

export interface Plan {
  changes: {
    action: "create" | "update" | "delete";
    kind: string;
    path: string;
    properties?: { property: string; before: unknown; after: unknown }[];
  }[];
  refused: { path: string; reason: string }[];
}

export function PlanView({ plan }: { plan: Plan }) {
  return (
    <>
      {plan.refused.map((refused) => (
        <Failure key={refused.path + refused.reason} error={`${refused.path}: ${refused.reason}`} />
      ))}
      {plan.changes.length === 0 ? (
        <Empty>Nothing would change.</Empty>
      ) : (
        <ul class="alarms">
          {plan.changes.map((change) => (
            <li key={change.kind + change.path}>
              <Badge text={change.action} tone={change.action === "delete" ? "bad" : "good"} /> {change.kind} {change.path}{" "}
              <code>
                {change.properties
                  ?.map((one) => `${one.property}: ${JSON.stringify(one.before)} → ${JSON.stringify(one.after)}`)
                  .join(", ")}
              </code>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
