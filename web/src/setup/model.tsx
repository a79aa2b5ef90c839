/** The language model: servers nearby as buttons, address, key and name, tried before they are saved. */
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { FoundServer } from '../../../src/core/setup.ts';
import { Refusal } from '../api.ts';
import { useTexts } from '../app.ts';
import { filled } from '../texts/texts.ts';
import { Told, useSteps } from './outcome.tsx';
import { saveModel, servers, setup, tryModel } from './requests.ts';

export function Model() {
  const { setup: texts } = useTexts();
  const id = useId();
  const stored = setup.value?.model ?? null;
  const [address, setAddress] = useState('');
  const [model, setModel] = useState('');
  const [key, setKey] = useState('');
  const [models, setModels] = useState<string[]>([]);
  const isTouched = useRef(false);
  const modelField = useRef<HTMLInputElement>(null);
  const { outcome, step, save } = useSteps();
  useEffect(() => {
    if (stored === null || isTouched.current) return;
    setAddress(stored.address);
    setModel(stored.name);
  }, [stored?.address, stored?.name]);
  const wish = { address: address.trim(), key: key.trim() || null, model: model.trim() };

  function use(server: FoundServer): void {
    isTouched.current = true;
    setAddress(server.address);
    setModels(server.models);
    setModel(server.models[0] ?? '');
    modelField.current?.focus();
  }

  function typed(set: (text: string) => void) {
    return ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
      isTouched.current = true;
      set(currentTarget.value);
    };
  }

  async function saveIt(): Promise<void> {
    await save(
      () => saveModel(wish),
      () =>
        setup.value?.model?.name === wish.model &&
        setup.value.model.address.startsWith(wish.address.replace(/\/+$/, '')),
    );
    setKey('');
  }

  return (
    <section class="card" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{texts.model}</h2>
      <p class="soft small">{texts.modelHint}</p>
      <Nearby use={use} />
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void saveIt();
        }}
      >
        <label>
          {texts.address}
          <input
            type="url"
            inputMode="url"
            required
            value={address}
            placeholder="http://127.0.0.1:11434/v1"
            aria-describedby={`${id}-address`}
            onInput={typed(setAddress)}
          />
        </label>
        <p id={`${id}-address`} class="hint">
          {texts.addressHint}
        </p>
        <label>
          {texts.key}
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={key}
            placeholder={stored?.hasKey ? '••••••••' : ''}
            aria-describedby={`${id}-key`}
            onInput={typed(setKey)}
          />
        </label>
        <p id={`${id}-key`} class="hint">
          {stored?.hasKey ? texts.keyStored : texts.keyHint}
        </p>
        <label>
          {texts.model}
          <input
            ref={modelField}
            required
            autocomplete="off"
            spellcheck={false}
            list={`${id}-models`}
            value={model}
            onInput={typed(setModel)}
          />
        </label>
        <datalist id={`${id}-models`}>
          {models.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <div class="row">
          <button
            type="button"
            disabled={wish.address === '' || wish.model === ''}
            onClick={() =>
              step(texts.asking, async () => {
                const tried = await tryModel(wish);
                if (!tried.works) return { kind: 'failed', says: tried.says };
                return { kind: 'done', says: filled(texts.works, { name: tried.says }) };
              })
            }
          >
            {texts.try}
          </button>
          <button type="submit" class="primary wide">
            {texts.save}
          </button>
        </div>
      </form>
      <Told outcome={outcome} />
    </section>
  );
}

function Nearby({ use }: { use: (server: FoundServer) => void }) {
  const { setup: texts } = useTexts();
  const id = useId();
  const [found, setFound] = useState<FoundServer[] | null>(null);

  function look(): void {
    setFound(null);
    servers().then(setFound, (error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
      setFound([]);
    });
  }

  useEffect(look, []);
  if (found === null) return <p class="soft small">{texts.looking}</p>;
  return (
    <div class="nearby stack">
      {found.length > 0 && (
        <h3 id={id} class="small">
          {texts.found}
        </h3>
      )}
      {found.map((server) => (
        <button key={server.address} type="button" class="found" onClick={() => use(server)}>
          <span>{filled(texts.use, { address: server.address })}</span>
          <span class="tiny soft" aria-hidden="true">
            {server.models.length === 1
              ? filled(texts.oneModel, { name: server.name, model: server.models[0] ?? '' })
              : filled(texts.models, { name: server.name, n: server.models.length })}
          </span>
        </button>
      ))}
      {found.length === 0 && <p class="soft small">{texts.noneFound}</p>}
      {found.length === 0 && (
        <div class="row">
          <button type="button" class="quiet" onClick={look}>
            {texts.lookAgain}
          </button>
        </div>
      )}
    </div>
  );
}
