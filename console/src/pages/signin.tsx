// Signs in by connection string, by the name and key of a rule, or by a token.
import { useState } from "preact/hooks";
import { type Session, basic, signIn } from "../api";
import { Failure } from "../ui";

/** The header's value for what the reader has typed. */
export function authorization(text: string, name: string): string {
  const parts = new Map<string, string>();
  for (const part of text.split(";")) {
    const at = part.indexOf("=");
    if (at > 0) parts.set(part.slice(0, at).trim().toLowerCase(), part.slice(at + 1).trim());
  }
  const [rule, key] = [parts.get("sharedaccesskeyname"), parts.get("sharedaccesskey")];
  if (rule && key) return basic(rule, key);
  // In a connection string it stands behind a name, whose first word it has too.
  const signature = parts.get("sharedaccesssignature") ?? text;
  if (signature.startsWith("SharedAccessSignature ")) return signature;
  return name ? basic(name, text) : `Bearer ${text}`;
}

export function SignIn({ done }: { done: (session: Session) => void }) {
  const [text, setText] = useState("");
  const [name, setName] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = (event: Event) => {
    event.preventDefault();
    setBusy(true);
    signIn(authorization(text.trim(), name.trim()))
      .then(done)
      .catch((error: Error) => setError(error.message))
      .finally(() => setBusy(false));
  };
  return (
    <main class="signin">
      <form onSubmit={submit}>
        <h1>Railbus</h1>
        <p>Sign in with a key of the namespace or of an entity. You get the rights of the key.</p>
        <label>
          Connection string, key or token
          <input
            type="password"
            autocomplete="off"
            required
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <label>
          Name of the rule <span class="note">for a key alone</span>
          <input autocomplete="off" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <Failure error={error} />
        <button type="submit" class="primary" disabled={isBusy}>
          Sign in
        </button>
      </form>
    </main>
  );
}
