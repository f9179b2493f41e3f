from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "webapp.jobs"
    label = "jobs"

    def ready(self) -> None:
        from webapp.accounts.quotas import COUNTED
        from webapp.jobs.selectors import jobs_held

        COUNTED.update(jobs=jobs_held)
