/** The configuration that is in effect, without its secrets. */
import type { ConfigKey, ConfigurationNow } from '../../../src/board/protocol-operations.ts';
import { useTexts } from '../app.ts';
import { filled } from '../texts/texts.ts';
import { Box, useReading } from './parts.tsx';
import { visible } from './symbols.ts';

const REREAD_MS = 60_000;

export function Configuration() {
  const { operations } = useTexts();
  const { answer } = useReading<ConfigurationNow>('api/board/operations/configuration', REREAD_MS);
  if (answer === null) return <Box title={operations.configuration} />;
  const { file, warnings, keys } = answer;
  const set = keys.flatMap(onlySet);
  return (
    <Box
      title={operations.configuration}
      level={warnings.length > 0 ? 'warn' : 'good'}
      line={file === null ? operations.noFile : visible(file, true)}
    >
      {warnings.length > 0 && (
        <ul>
          {warnings.map((warning) => (
            <li key={warning} class="words">
              {visible(warning, true)}
            </li>
          ))}
        </ul>
      )}
      <p class="soft small">{operations.configurationHint}</p>
      {set.length === 0 ? <p class="soft small">{operations.allDefaults}</p> : <Tree keys={set} />}
      <details>
        <summary class="small">{filled(operations.allKeys, { n: keys.length })}</summary>
        <Tree keys={keys} />
      </details>
    </Box>
  );
}

function Tree({ keys }: { keys: ConfigKey[] }) {
  return (
    <ul class="tree">
      {keys.map((each) => (
        <li key={each.key} class="words">
          <KeyOf entry={each} />
        </li>
      ))}
    </ul>
  );
}

function KeyOf({ entry: { key, value, inner, sources, isSet } }: { entry: ConfigKey }) {
  const { operations } = useTexts();
  const name = <code class={isSet ? '' : 'soft'}>{visible(key, true)}</code>;
  if (inner !== undefined) {
    return (
      <>
        {name}
        <Tree keys={inner} />
      </>
    );
  }
  return (
    <>
      {name}:{' '}
      {value === null || value === undefined ? (
        <span class="soft">{operations.notSet}</span>
      ) : value === '' ? (
        <span class="soft">{operations.empty}</span>
      ) : (
        <span>{visible(value, true)}</span>
      )}
      {sources?.map((source) => (
        <span key={source} class="soft">
          {' '}
          ← <code>{visible(source, true)}</code>
        </span>
      ))}
    </>
  );
}

function onlySet(entry: ConfigKey): ConfigKey[] {
  if (!entry.isSet || entry.value === null) return [];
  return [entry.inner === undefined ? entry : { ...entry, inner: entry.inner.flatMap(onlySet) }];
}
