from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "webapp.accounts"
    label = "accounts"
    verbose_name = "Users and teams"

    def ready(self) -> None:
        from webapp.accounts.quotas import COUNTED, tokens_held

        COUNTED.update(tokens=tokens_held)
