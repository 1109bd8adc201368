// The tabs of a run, the same while it waits, while it runs and once it is over.

export type Tab = 'output' | 'code' | 'inputs' | 'files' | 'details';

interface TabName {
  key: Tab;
  name: string;
}

export function tabsOf({ inputs, files }: { inputs: number; files: number | null }): TabName[] {
  const counted = (name: string, count: number) => (count > 0 ? `${name} (${count})` : name);
  return [
    { key: 'output', name: 'Output' },
    { key: 'code', name: 'Code' },
    { key: 'inputs', name: counted('Inputs', inputs) },
    ...(files === null ? [] : [{ key: 'files', name: counted('Files', files) } as const]),
    { key: 'details', name: 'Details' },
  ];
}
