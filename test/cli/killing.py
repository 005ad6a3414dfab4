# SPDX-License-Identifier: Apache-2.0
"""killing.py - kills training runs at random moments and looks at what they leave.

Rounds of one run each: a run that saves every step is killed with SIGKILL, resumed, killed again,
until it reaches its end; then its file, its best weights and its log must be those of a run that
nobody disturbed. Rounds follow each other until enough kills have hit a living process.

    spawn ...... ready .. step .. save .. step .. save .. step      of twenty kills four come while it
          ^ four       ^      ^  ^  ^^^   ^    ^                    starts, three inside a save, three
                       ten           three + three                  behind its rename, ten anywhere
"""
import os
import random
import time

from util import (SILENT, TINY, check, equal, expect, finish, freeze_when, goes_on, note, read,
                  read_step, same_log, same_run, start, step_of, text_file, tinygpt, train)

# Nearly every validation is a new best, so that most saves write two files.
RUN = ("--steps", "40", "--eval-every", "2", "--eval-windows", "8")
NEVER = 1000  # kills without an end of the round: there is no progress


class Round:
    """One run in the current folder, as the files r.tinygpt and r.jsonl."""

    def __init__(self, dice, startup_s):
        self.dice, self.startup_s = dice, startup_s
        self.kills = self.in_save = 0

    def spawn(self):
        """Resumes the run, or begins it as long as it has never been saved."""
        saved = os.path.exists("r.tinygpt")
        what = ("--resume", "r.tinygpt") if saved else (*TINY, *RUN, "--out", "r.tinygpt")
        return start("train", "--data", text_file(), *SILENT, *what, "--save-every", "1", "--log",
                     "r.jsonl", "--json")

    def live_once(self):
        """Lets the run live for a moment. True when it came to its end."""
        p = self.spawn()
        mode = self.dice.random()
        if mode < 0.2:
            time.sleep(self.dice.uniform(0, self.startup_s))
        else:
            read_step(p, 1)
            if mode < 0.35:
                self.await_save(p)
                time.sleep(self.dice.uniform(0, 0.001))
            elif mode < 0.5:
                own = f".tmp-{p.pid}"
                freeze_when(p, lambda: any(own in name for name in os.listdir(".")))
            else:
                time.sleep(self.dice.uniform(0, 0.02))
        alive = p.poll() is None
        p.kill()
        r = finish(p)
        if r.code == -9 and alive:
            self.kills += 1
            return False
        # It had ended by itself, with the last step in its file.
        expect(r, 0, "a run that was not killed in time")
        return True

    @staticmethod
    def await_save(process):
        """Waits for a new file under the run's name: what belongs to that save is still to come."""
        def inode():
            try:
                return os.stat("r.tinygpt").st_ino
            except FileNotFoundError:
                return 0

        before = inode()
        while inode() == before and process.poll() is None:
            pass

    def inspect(self):
        """After each kill: the file is there if it ever was, and whole."""
        names = os.listdir(".")
        litter = [n for n in names if ".tmp" in n]
        self.in_save += bool(litter)
        if not check(len(litter) <= 3, "temporary files do not pile up", str(litter)):
            return False
        if os.path.exists("r.tinygpt"):
            if not expect(tinygpt("verify", "r.tinygpt"), 0, f"the file after kill {self.kills}"):
                return False
            # A resumed run never sees the weights of an earlier step again.
            known = tinygpt("info", "r.tinygpt", "--json").json().get("best_val")
            best = step_of("r.tinygpt.best")
            return check(not known or best >= known["step"],
                         f"the best weights after kill {self.kills} are those the run knows of",
                         f"want step {known and known['step']}, have {best}")
        return check("r.tinygpt.prev" not in names, "a file that was saved stays", str(names))

    def run(self, limit):
        """Kills until the run ends or limit is reached. False when something is wrong."""
        while self.kills < min(limit, NEVER):
            if self.live_once():
                return self.compare(f"after {self.kills} kills")
            if not self.inspect():
                return False
        if not check(self.kills < NEVER, "killed runs come to an end"):
            return False
        expect(finish(self.spawn()), 0, "the run after its last kill")
        return self.compare("after the last kill")

    def compare(self, what):
        ok = same_run("../calm.tinygpt", "r.tinygpt", what)
        ok = check(read("../calm.tinygpt.best") == read("r.tinygpt.best"),
                   f"{what}: the best weights are equal") and ok
        ok = same_log("../calm.jsonl", "r.jsonl", what) and ok
        outputs = {"r.tinygpt", "r.tinygpt.best", "r.tinygpt.svg", "r.jsonl"}
        allowed = outputs | {f"{name}.prev" for name in outputs}  # what each output has replaced
        extra = set(os.listdir(".")) - allowed
        return check(not extra, f"{what}: a finished run leaves no litter", str(extra)) and ok


def kill_many(n_kills, seed, progress=None):
    """The whole test, in the current folder; progress is called with the number of kills so far."""
    dice = random.Random(seed)
    expect(train(*RUN, "--out", "calm.tinygpt", "--log", "calm.jsonl"), 0, "the undisturbed run")
    expect(train("--steps", "1", "--no-save"), 0, "the shortest run")
    begun = time.monotonic()
    expect(train("--steps", "1", "--no-save"), 0, "the shortest run again")
    startup_s = time.monotonic() - begun
    kills = rounds = in_save = 0
    ok = True
    while ok and kills < n_kills:
        goes_on()
        rounds += 1
        folder = f"round{rounds}"
        os.mkdir(folder)
        os.chdir(folder)
        r = Round(dice, startup_s)
        ok = r.run(n_kills - kills)
        kills += r.kills
        in_save += r.in_save
        os.chdir("..")
        if ok:
            for name in os.listdir(folder):
                os.remove(os.path.join(folder, name))
            os.rmdir(folder)
        if progress:
            progress(kills)
    equal(kills >= n_kills, True, f"{n_kills} kills")
    check(in_save > 0, "some kills fell into a save")
    note(f"{kills} kills in {rounds} runs, {in_save} of them inside a save, seed {seed}")
