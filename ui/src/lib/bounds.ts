// What a field of the settings accepts. The app has the last word; this says it before the round trip. Pure.

interface Bound {
  min: number;
  max: number;
  whole: boolean;
}

export const BOUNDS = {
  'limits.seconds': { min: 0.1, max: 3600, whole: false },
  'limits.cpus': { min: 0.05, max: 512, whole: false },
  'limits.memory_mb': { min: 32, max: 1_048_576, whole: true },
  'limits.processes': { min: 16, max: 4096, whole: true },
  'limits.output_kb': { min: 1, max: 896, whole: true },
  'limits.files_mb': { min: 1, max: 10, whole: true },
  queue: { min: 1, max: 1024, whole: true },
  per_client: { min: 1, max: 1024, whole: true },
  warm: { min: 0, max: 64, whole: true },
  concurrency: { min: 1, max: 64, whole: true },
  'history.max_runs': { min: 1, max: 1_000_000, whole: true },
  'history.max_mb': { min: 1, max: 102_400, whole: true },
  'history.max_days': { min: 1, max: 3650, whole: true },
} as const satisfies Record<string, Bound>;

export type NumberField = keyof typeof BOUNDS;

/** The number, or the sentence that goes beside the field. */
export function readNumber(text: string, { min, max, whole }: Bound): number | string {
  // 0,125 is an eighth, and 1,024 a thousand and some.
  const plain = text.trim().replace(/(?<=[1-9]\d*)[,\s](?=\d{3}\b)/g, '').replace(',', '.');
  if (!/^-?\d+(\.\d+)?$/.test(plain)) return whole ? 'Enter a whole number.' : 'Enter a number.';
  const value = Number(plain);
  if (value < min || value > max) return `Enter a number from ${figure(min)} to ${figure(max)}.`;
  if (whole && !Number.isInteger(value)) return 'Enter a whole number.';
  return value;
}

/** As numbers are written everywhere: 1,024 and 0.5. */
export function figure(value: number): string {
  const [whole = '', part] = value.toString().split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return part === undefined ? grouped : `${grouped}.${part}`;
}
