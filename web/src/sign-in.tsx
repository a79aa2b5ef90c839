/** Where a token is asked for: a form, and nothing else of the page. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, isSignedIn, Refusal } from './api.ts';
import { useTexts } from './app.ts';
import { Fault } from './kit/fault.tsx';
import { begin } from './session.ts';
import { filled } from './texts/texts.ts';

export function SignIn() {
  const { signIn } = useTexts();
  const [fault, setFault] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const token = new FormData(event.currentTarget as HTMLFormElement).get('token');
    try {
      await ask('api/session', { method: 'POST', json: { token } });
      await begin();
      if (!isSignedIn.value) setFault(signIn.noCookie);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { status, retryAfter, message } = error;
      if (status === 401) setFault(signIn.wrong);
      else if (status === 429) setFault(filled(signIn.wait, { n: retryAfter ?? 60 }));
      else setFault(message);
    }
  }

  return (
    <main id="main" class="sign-in">
      <span class="brand" aria-hidden="true">
        coterie
      </span>
      <h1>{signIn.title}</h1>
      <form onSubmit={submit}>
        <label>
          {signIn.token}
          <input ref={field} type="password" name="token" autocomplete="current-password" required />
        </label>
        <p class="soft small">{signIn.hint}</p>
        <button type="submit" class="primary">
          {signIn.signIn}
        </button>
      </form>
      <Fault says={fault} />
    </main>
  );
}
