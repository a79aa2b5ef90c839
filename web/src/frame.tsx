/** Around every place: skip link, head with menu and connection, and the place itself, whose code comes with the first visit. */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ask, isSignedIn, read } from './api.ts';
import { useTexts } from './app.ts';
import { connect, connection, disconnect } from './live.ts';
import { addressOf, PLACES, type PlaceName, place } from './place.ts';
import { SignIn } from './sign-in.tsx';

const LOAD: Record<PlaceName, () => Promise<{ default: ComponentType }>> = {
  chat: () => import('./chat/chat.tsx'),
  conversations: () => import('./conversations/conversations.tsx'),
  memory: () => import('./memory/memory.tsx'),
  work: () => import('./work/work.tsx'),
  operations: () => import('./operations/operations.tsx'),
  setup: () => import('./setup/setup.tsx'),
};

export function Frame() {
  const texts = useTexts();
  const name = place.value.name ?? 'chat';
  useEffect(() => {
    read('api/board/hello')
      .then(() => {
        isSignedIn.value = true;
        connect();
      })
      .catch(() => {});
  }, []);
  if (isSignedIn.value === false) return <SignIn />;
  return (
    <>
      <a class="skip" href="#main">
        {texts.frame.skip}
      </a>
      <header>
        <nav aria-label={texts.frame.main}>
          {PLACES.map((each) => (
            <a key={each} href={addressOf(each)} {...(each === name && { 'aria-current': 'page' })}>
              {texts.frame[each]}
            </a>
          ))}
        </nav>
        <p role="status" aria-label={texts.frame.connection}>
          {texts.frame[connection.value]}
        </p>
        <button
          type="button"
          onClick={async () => {
            await ask('api/session', { method: 'DELETE' });
            disconnect();
            isSignedIn.value = false;
          }}
        >
          {texts.frame.signOut}
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        <Inside name={name} />
      </main>
    </>
  );
}

function Inside({ name }: { name: PlaceName }) {
  const [Loaded, setLoaded] = useState<ComponentType | null>(null);
  useEffect(() => {
    let isOver = false;
    setLoaded(null);
    LOAD[name]().then((module) => isOver || setLoaded(() => module.default));
    return () => {
      isOver = true;
    };
  }, [name]);
  return Loaded && <Loaded />;
}
