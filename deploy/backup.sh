#!/bin/sh
# backup.sh STORAGE FOLDER [DAYS]: make and check a copy, then remove copies older than DAYS (30).
# Daily, in /etc/cron.d:
#   17 3 * * * rank1 /opt/rank1/bin/backup.sh /var/lib/rank1/rank1.db /var/backups/rank1
set -eu
umask 077  # a copy has what the storage has, such as names of units
storage=$1 folder=$2 days=${3:-30}
mkdir -p "$folder"
copy=$folder/rank1-$(date -u +%Y%m%dT%H%M%SZ)
trap 'rm -f "$copy.part"' EXIT
case $storage in
  postgresql://*)
    pg_dump --format=custom --file="$copy.part" "$storage"
    pg_restore --list "$copy.part" > /dev/null
    mv "$copy.part" "$copy.dump" ;;
  *)
    rank1 study backup --storage "$storage" --out "$copy.db"
    rank1 study doctor --storage "$copy.db" ;;
esac
# Old copies are removed only after today's copy has passed its check.
find "$folder" -maxdepth 1 -name 'rank1-*' -mtime "+$days" -exec rm -f {} +
