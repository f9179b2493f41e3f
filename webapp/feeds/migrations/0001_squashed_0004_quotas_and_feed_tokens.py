"""Feeds, regions, receipts and dead letters."""

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import webapp.config.documents


class Migration(migrations.Migration):
    replaces = [
        ("feeds", "0001_initial"),
        ("feeds", "0002_rows_from_the_future"),
        ("feeds", "0003_damaged_logs"),
        ("feeds", "0004_quotas_and_feed_tokens"),
    ]

    initial = True

    dependencies = [
        ("accounts", "0002_invitations"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Feed",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("public", models.BooleanField(default=False, help_text="Everyone who is logged in may read it.")),
                (
                    "name",
                    models.CharField(
                        max_length=63,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z][a-z0-9_-]{0,62}\\Z", "Lower-case letters, digits, - and _; begins with a letter; at most 63 characters."
                            )
                        ],
                    ),
                ),
                ("title", models.CharField(max_length=100)),
                ("crs", models.CharField(choices=[("geographic", "geographic"), ("planar", "planar")], max_length=10)),
                ("time", models.CharField(choices=[("ms", "ms"), ("ticks", "ticks")], default="ms", max_length=5)),
                ("tick", models.BigIntegerField(default=1, validators=[django.core.validators.MinValueValidator(1)])),
                (
                    "lateness",
                    models.BigIntegerField(default=0, help_text="In the unit of t.", validators=[django.core.validators.MinValueValidator(0)]),
                ),
                ("dedupe", models.BooleanField(default=True)),
                (
                    "columns",
                    webapp.config.documents.DocumentField(blank=True, default=dict, help_text="Attribute name to string, int, float or bool."),
                ),
                ("wall_clock", models.BooleanField(default=False, help_text="Event times are the wall clock's: silence moves the watermark too.")),
                ("plan_image", models.FileField(blank=True, help_text="The plan under a planar feed: PNG, JPEG or WebP.", upload_to="plans/")),
                (
                    "plan_bounds",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(), blank=True, help_text="x0, y0, x1, y1 of the image in the plane.", null=True, size=4
                    ),
                ),
                (
                    "view",
                    webapp.config.documents.DocumentField(blank=True, default=dict, help_text='Where the map opens: {"center": [x, y], "zoom": z}.'),
                ),
                ("query_version", models.BigIntegerField(default=0, editable=False)),
                (
                    "retention_hours",
                    models.PositiveIntegerField(
                        default=72, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(87840)]
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "ahead",
                    models.BigIntegerField(
                        blank=True,
                        help_text="How far a row may be ahead of the clock, in the unit of t; null: as far as it likes (decision 17).",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                ("owner", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                (
                    "team",
                    models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="accounts.team"),
                ),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="IngestCounter",
            fields=[
                (
                    "feed",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name="ingest_counter", serialize=False, to="feeds.feed"
                    ),
                ),
                ("received", models.BigIntegerField(default=0)),
                ("dead", models.BigIntegerField(default=0)),
                ("log_seq", models.BigIntegerField(default=0)),
                ("lost", models.BigIntegerField(default=0, help_text="Received rows that a damaged log lost before they were processed.")),
            ],
        ),
        migrations.CreateModel(
            name="LogDamage",
            fields=[
                (
                    "feed",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name="damage", serialize=False, to="feeds.feed"
                    ),
                ),
                ("file", models.CharField(blank=True, help_text="Within the feed's folder; empty when a file is missing.", max_length=300)),
                ("reason", models.TextField()),
                ("found_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="DeadLetter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("reason", models.CharField(max_length=40)),
                ("detail", models.TextField(blank=True)),
                ("row", models.JSONField(null=True)),
                ("line", models.BigIntegerField(null=True)),
                ("source", models.CharField(blank=True, max_length=200)),
                ("received_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("feed", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="dead_letters", to="feeds.feed")),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [models.Index(fields=["feed", "-id"], name="dead_letters_of_feed")],
            },
        ),
        migrations.CreateModel(
            name="IngestReceipt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=200)),
                ("digest", models.CharField(blank=True, max_length=64)),
                ("first_seq", models.BigIntegerField(null=True)),
                ("last_seq", models.BigIntegerField(null=True)),
                ("accepted", models.BigIntegerField(default=0)),
                ("dead", models.BigIntegerField(default=0)),
                ("dead_letters", models.JSONField(default=list, help_text="The first few, as answered.")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("late", models.BigIntegerField(default=0)),
                ("feed", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="receipts", to="feeds.feed")),
            ],
            options={
                "indexes": [models.Index(fields=["created_at"], name="receipts_by_age")],
                "constraints": [models.UniqueConstraint(fields=("feed", "key"), name="one_receipt_for_a_key")],
            },
        ),
        migrations.CreateModel(
            name="Region",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("public", models.BooleanField(default=False, help_text="Everyone who is logged in may read it.")),
                (
                    "name",
                    models.CharField(
                        max_length=100, validators=[django.core.validators.RegexValidator("^[^\\x00-\\x1f\\x7f]+\\Z", "No control characters.")]
                    ),
                ),
                ("geometry", webapp.config.documents.DocumentField(help_text="GeoJSON Polygon or MultiPolygon, or a circle.")),
                (
                    "bbox",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(), editable=False, help_text="Least x, least y, greatest x, greatest y.", size=4
                    ),
                ),
                ("tags", django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), blank=True, default=list, size=None)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("vertices", models.PositiveIntegerField(default=0, editable=False, help_text="How many its geometry has; a circle has one.")),
                ("feed", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="regions", to="feeds.feed")),
                ("owner", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                (
                    "team",
                    models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="accounts.team"),
                ),
            ],
            options={
                "ordering": ("feed", "name"),
                "constraints": [models.UniqueConstraint(fields=("feed", "name"), name="region_name_in_feed")],
            },
        ),
    ]
