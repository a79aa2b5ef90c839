/** Work: the plan and the memory of the workspace, tasks, and the files that came out of them. */
import { useTexts } from '../app.ts';
import { Tabs } from '../kit/tabs.tsx';
import { addressOf, go, place } from '../place.ts';
import { Artifacts } from './artifacts.tsx';
import { Tasks } from './tasks.tsx';
import './work.css';
import { WorkspaceFile } from './workspace-file.tsx';

const TABS = ['plan', 'tasks', 'artifacts', 'memory'] as const;

export default function Work() {
  const { frame, work } = useTexts();
  const [name, first = null, second = null] = place.value.parts;
  const chosen = TABS.find((each) => each === name) ?? 'plan';
  return (
    <div class="place work">
      <h1>{frame.work}</h1>
      <Tabs
        label={frame.work}
        tabs={TABS.map((each) => ({ name: each, title: work[each] }))}
        chosen={chosen}
        choose={(each) => go(addressOf('work', [each]))}
      >
        {(chosen === 'plan' || chosen === 'memory') && <WorkspaceFile key={chosen} which={chosen} />}
        {chosen === 'tasks' && <Tasks opened={first} />}
        {chosen === 'artifacts' && (
          <Artifacts chosen={first === null || second === null ? null : [first, second]} />
        )}
      </Tabs>
    </div>
  );
}
