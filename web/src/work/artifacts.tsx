/** Files that tasks and turns made, newest first, and one of them beside the list. */
import { signal } from '@preact/signals';
import { useId, useState } from 'preact/hooks';
import type { ArtifactItem, ArtifactPage } from '../../../src/board/protocol.ts';
import { Refusal, read } from '../api.ts';
import { useTexts } from '../app.ts';
import { languageOfPage, sizeInWords, timeInWords } from '../kit/words.ts';
import { addressOf } from '../place.ts';
import { useWork } from './collected.ts';
import { Preview } from './preview.tsx';

/** `chosen`: a task or turn, and the artifact's id. */
export function Artifacts({ chosen }: { chosen: readonly [string, string] | null }) {
  const { work, frame } = useTexts();
  const id = useId();
  const [{ page, fault, reread }] = useState(artifactList);
  useWork(reread);
  const found = page.value;
  const isChosen = (item: ArtifactItem) => item.task === chosen?.[0] && item.id === chosen[1];
  return (
    <div class={`pair ${chosen === null ? '' : 'chosen'}`}>
      <div class="first stack">
        <h2 id={id}>{work.artifacts}</h2>
        {fault.value !== null && <p role="alert">{fault.value || frame.failed}</p>}
        {found?.artifacts.length === 0 && <p class="soft">{work.noArtifacts}</p>}
        {/* biome-ignore lint/a11y/noRedundantRoles: without markers, Safari takes the role away. */}
        <ul class="list items" role="list" aria-labelledby={id}>
          {found?.artifacts.map((item) => (
            <li key={`${item.task}/${item.id}`}>
              <Item item={item} isChosen={isChosen(item)} />
            </li>
          ))}
        </ul>
        {found?.isCut && <p class="soft small">{work.artifactsCut}</p>}
      </div>
      {chosen !== null && (
        <Preview
          key={chosen.join('/')}
          task={chosen[0]}
          id={chosen[1]}
          at={found?.artifacts.find(isChosen)?.at ?? null}
        />
      )}
    </div>
  );
}

function artifactList() {
  const page = signal<ArtifactPage | null>(null);
  const fault = signal<string | null>(null);
  return {
    ...{ page, fault },
    async reread(): Promise<void> {
      try {
        page.value = await read<ArtifactPage>('api/board/artifacts');
        fault.value = null;
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        // The live line says when to try again; what is there stays.
        if (page.peek() === null && error.status !== 401) fault.value = error.message;
      }
    },
  };
}

function Item({ item, isChosen }: { item: ArtifactItem; isChosen: boolean }) {
  const { task, id, name, title, bytes, at } = item;
  return (
    <article class={`item ${isChosen ? 'opened' : ''}`}>
      <a href={addressOf('work', ['artifacts', task, id])} {...(isChosen && { 'aria-current': 'true' })}>
        {title ?? name}
      </a>
      <div class="row tiny soft">
        {title !== null && <span class="cuts">{name}</span>}
        <span>{sizeInWords(bytes, languageOfPage())}</span>
        <time dateTime={new Date(at).toISOString()}>{timeInWords(at, languageOfPage())}</time>
      </div>
    </article>
  );
}
