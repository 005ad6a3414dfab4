#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make demo: trains a small model on stories (or on DATA=FILE) and lets it write. About a minute and a
# half on two cores.
set -eu
program=$1
data=${2:-}
folder=build/demo
mkdir -p $folder
prompt="Once "
if [ -z "$data" ]; then
    data=$folder/stories.txt
    echo "Writing 4 MB of small stories to $data (made by a grammar, nothing is downloaded)."
    "$program" corpus stories --bytes 4M --seed 1 --out $data
else
    prompt=$(head -c 32 "$data" | head -n 1 | cut -c1-12)
fi
"$program" train --data "$data" --preset small --steps "${STEPS:-3000}" --lr 3e-3 --schedule cosine \
    --warmup 100 --eval-every 250 --sample-every 1000 --sample-prompt "$prompt" --out $folder/demo.tinygpt --force
echo
echo "A text by the model that you have just trained:"
echo
"$program" sample $folder/demo.tinygpt --prompt "$prompt" --tokens 600 --temp 0.7 --seed 7
echo
echo
echo "Next, try:"
echo "  $program sample $folder/demo.tinygpt --prompt \"$prompt\" --temp 1 --seed 1     another text"
echo "  $program train --resume $folder/demo.tinygpt --data $data --steps 6000     go on training"
echo "  $program train --data YOUR.txt --preset medium     your own text, a larger model"
