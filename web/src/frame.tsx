/** Around every place: skip link, head with menu and connection, and the place itself, whose code comes with the first visit. */
import { Component, type ComponentChildren, type ComponentType } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { isSignedIn } from './api.ts';
import { useTexts } from './app.ts';
import { Icon } from './kit/icons.tsx';
import { connection } from './live.ts';
import { WORST_MARK, WorstMark } from './operations/worst-mark.tsx';
import { addressOf, go, PLACES, type PlaceName, place } from './place.ts';
import { begin, hello, signOut } from './session.ts';
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
  const { frame, signIn } = useTexts();
  const name = place.value.name ?? 'chat';
  const isSignIn = isSignedIn.value === false;
  useEffect(() => void begin(), []);
  useEffect(() => {
    document.title = `${isSignIn ? signIn.title : frame[name]} · coterie`;
  }, [frame, signIn, name, isSignIn]);
  useEffect(() => {
    if (hello.value?.isSetupDue && place.value.name === null) go(addressOf('setup'), true);
  }, [hello.value]);
  if (isSignIn) return <SignIn />;
  return (
    <>
      <Head name={name} />
      <main id="main" tabIndex={-1}>
        {isSignedIn.value && (
          <Boundary key={name}>
            <Inside name={name} />
          </Boundary>
        )}
      </main>
    </>
  );
}

function Head({ name }: { name: PlaceName }) {
  const { frame } = useTexts();
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const [isStillIn, setStillIn] = useState(false);
  useEffect(() => {
    if (!isOpen) return;
    const close = ({ key }: KeyboardEvent) => key === 'Escape' && setOpen(false);
    addEventListener('keydown', close);
    return () => removeEventListener('keydown', close);
  }, [isOpen]);
  return (
    <header class="head">
      <a
        class="skip"
        href={addressOf(name)}
        onClick={(event) => {
          // Behind `#` stands where one is.
          event.preventDefault();
          document.getElementById('main')?.focus();
        }}
      >
        {frame.skip}
      </a>
      <span class="brand" aria-hidden="true">
        coterie
      </span>
      <p class={`connection ${connection.value}`} role="status" aria-label={frame.connection}>
        {frame[connection.value]}
      </p>
      <button
        type="button"
        class="quiet menu"
        aria-label={frame.menu}
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name={isOpen ? 'close' : 'menu'} />
      </button>
      <nav id={id} aria-label={frame.main} class={isOpen ? 'open' : ''}>
        {PLACES.map((each) => (
          <a
            key={each}
            href={addressOf(each)}
            {...(each === name && { 'aria-current': 'page' })}
            {...(each === 'operations' && { 'aria-describedby': WORST_MARK })}
            onClick={() => setOpen(false)}
          >
            <Icon name={each} />
            {frame[each]}
            {each === 'operations' && <WorstMark />}
          </a>
        ))}
        {hello.value?.signedInBy === 'session' && (
          <button type="button" class="quiet sign-out" onClick={async () => setStillIn(!(await signOut()))}>
            <Icon name="signOut" />
            {frame.signOut}
          </button>
        )}
        {isStillIn && <p role="alert">{frame.failed}</p>}
      </nav>
    </header>
  );
}

/** After a change of place, the new one takes the focus. */
function Inside({ name }: { name: PlaceName }) {
  const [Loaded, setLoaded] = useState<ComponentType | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  useEffect(() => {
    let isOver = false;
    LOAD[name]()
      .then((module) => isOver || setLoaded(() => module.default))
      .catch(setFault);
    return () => {
      isOver = true;
    };
  }, [name]);
  const before = useRef(lastPlace);
  // Before anybody sees it: a key that is pressed then may lead elsewhere.
  useLayoutEffect(() => {
    if (Loaded === null) return;
    if (before.current !== null && before.current !== name) document.getElementById('main')?.focus();
    lastPlace = name;
  }, [Loaded, name]);
  // An update of the gateway takes the old files away.
  if (fault !== null) return <Broken />;
  return Loaded && <Loaded />;
}

/** The one that was shown before; null: the page has just begun. */
let lastPlace: PlaceName | null = null;

/** A fault of a place leaves the frame in place. */
class Boundary extends Component<{ children: ComponentChildren }, { isBroken: boolean }> {
  override state = { isBroken: false };

  static override getDerivedStateFromError() {
    return { isBroken: true };
  }

  override render() {
    return this.state.isBroken ? <Broken /> : this.props.children;
  }
}

function Broken() {
  const { frame } = useTexts();
  return (
    <div class="place">
      <p role="alert">{frame.broken}</p>
      <div>
        <button type="button" onClick={() => location.reload()}>
          {frame.reload}
        </button>
      </div>
    </div>
  );
}
