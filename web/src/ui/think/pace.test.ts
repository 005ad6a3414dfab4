// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Pace, pageVisible, restMs, sleep, type Clock } from './pace';

/** A clock that moves only when somebody works or sleeps. */
class TestClock implements Clock {
  at = 0;
  slept = 0;
  now() {
    return this.at;
  }
  async sleep(ms: number) {
    this.at += ms;
    this.slept += ms;
  }
}

describe('Pace', () => {
  it('keeps watching to a tenth of the time while the model trains', async () => {
    const clock = new TestClock();
    const pace = new Pace(() => true, 0.1, clock);
    for (let i = 0; i < 10; i++)
      await pace.run(async () => {
        clock.at += 7;
      });
    expect(70 / clock.at).toBeCloseTo(0.1, 10);
  });

  it('does not take a queue for work, nor rest for ever', async () => {
    const clock = new TestClock();
    const pace = new Pace(() => true, 0.1, clock);
    await pace.run(async () => {
      clock.at += 10;
    });
    expect(clock.slept).toBeCloseTo(90, 10);
    await pace.run(async () => {
      clock.at += 4000;
    });
    expect(clock.slept).toBeCloseTo(180, 10);
    // Four in a row are no accident any more.
    for (let i = 0; i < 3; i++)
      await pace.run(async () => {
        clock.at += 4000;
      });
    expect(clock.slept).toBeCloseTo(90 + 90 * 3 + 5000, 10);
  });

  it('does not rest when nothing trains', async () => {
    const clock = new TestClock();
    await new Pace(() => false, 0.1, clock).run(async () => {
      clock.at += 7;
    });
    expect(clock.slept).toBe(0);
  });

  it('does no work after an abort and throws its reason', async () => {
    const control = new AbortController();
    const reason = new Error('enough');
    control.abort(reason);
    let worked = false;
    await expect(
      new Pace().run(async () => {
        worked = true;
      }, control.signal),
    ).rejects.toBe(reason);
    expect(worked).toBe(false);
  });
});

describe('sleep', () => {
  it('ends early with the reason of the abort', async () => {
    const control = new AbortController();
    const reason = new Error('stop');
    const sleeping = sleep(60_000, control.signal);
    control.abort(reason);
    await expect(sleeping).rejects.toBe(reason);
    await expect(sleep(60_000, control.signal)).rejects.toBe(reason);
  });
  it('ends by itself', async () => {
    await expect(sleep(1)).resolves.toBeUndefined();
  });
});

it('rests three times as long for a quarter', () => expect(restMs(5, 0.25)).toBeCloseTo(15, 10));
it('takes a place without a page for visible', async () => {
  await expect(pageVisible()).resolves.toBeUndefined();
});
