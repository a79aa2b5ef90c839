/** The first minute, and every later one in which something is to be connected: a model, a platform, a persona. */
import { useEffect } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { onChange } from '../live.ts';
import { addressOf, go } from '../place.ts';
import { hello } from '../session.ts';
import { Model } from './model.tsx';
import { Told, useSteps } from './outcome.tsx';
import { PersonaForm } from './persona.tsx';
import { Platform } from './platform.tsx';
import { leave, reread, setup } from './requests.ts';
import './setup.css';

export default function Setup() {
  const { frame, setup: texts } = useTexts();
  const isDue = setup.value?.isDue === true;
  useEffect(() => {
    void reread();
    return onChange('setup', () => void reread());
  }, []);

  const { outcome, step } = useSteps();
  const toChat = () =>
    step('', async () => {
      if (isDue) await leave('skipped');
      if (hello.value !== null) hello.value = { ...hello.value, isSetupDue: false };
      go(addressOf('chat'));
      return { kind: 'done', says: '' };
    });

  return (
    <div class="setup place stack">
      <header class="row">
        <h1 class="grow">{frame.setup}</h1>
        <button type="button" class="wide" onClick={toChat}>
          {isDue ? texts.skip : texts.toChat}
        </button>
        <p class="soft">{isDue ? texts.intro : texts.again}</p>
      </header>
      <Told outcome={outcome} />
      <Model />
      <Platform />
      <PersonaForm />
    </div>
  );
}
