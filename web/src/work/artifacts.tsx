/** Files that tasks and turns made, newest first, and one of them beside the list. */
import { useId } from 'preact/hooks';
import type { ArtifactItem, ArtifactPage } from '../../../src/board/protocol.ts';
import { read } from '../api.ts';
import { useTexts } from '../app.ts';
import { Fault } from '../kit/fault.tsx';
import { useFollowed } from '../kit/follow.ts';
import { Time } from '../kit/time.tsx';
import { languageOfPage, sizeInWords } from '../kit/words.ts';
import { addressOf } from '../place.ts';
import { Preview } from './preview.tsx';

/** `chosen`: a task or turn, and the artifact's id. */
export function Artifacts({ chosen }: { chosen: readonly [string, string] | null }) {
  const { work } = useTexts();
  const id = useId();
  const { answer: found, fault } = useFollowed(['work'], artifacts);
  const isChosen = (item: ArtifactItem) => item.task === chosen?.[0] && item.id === chosen[1];
  return (
    <div class={`pair ${chosen === null ? '' : 'chosen'}`}>
      <div class="first stack">
        <h2 id={id}>{work.artifacts}</h2>
        {found === null && <Fault says={fault} />}
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

function artifacts(signal: AbortSignal): Promise<ArtifactPage> {
  return read('api/board/artifacts', signal);
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
        <Time at={at} />
      </div>
    </article>
  );
}
