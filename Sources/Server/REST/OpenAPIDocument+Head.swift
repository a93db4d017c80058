// Made from docs/openapi.yaml by Tests/Contract/embed.py; a test compares them.

extension OpenAPIDocument {
    static let head: String = #"""
        openapi: 3.1.0
        info:
          title: Thicket
          version: 0.1.0
          summary: Buckets over HTTP, built-in accounts, and users of partners.
          description: |
            The same buckets that sockets sync. A change made here is decided, stored and told to sockets like one of
            theirs, and the reverse. Decisions and reasons stand in docs/PROTOCOL.md, section "Over HTTP"; who lets users in,
            and what is counted and answered 429, in docs/AUTH.md.
          license:
            name: Apache 2.0
            identifier: Apache-2.0
        servers:
          - url: http://127.0.0.1:8000
            description: A server on this machine.
        security:
          - token: []
        tags:
          - name: objects
            description: One object at a time.
          - name: buckets
            description: What a bucket holds, and what happens in it.
          - name: user
            description: Whose token that is.
          - name: administration
            description: For programs of the app's operator.
          - name: passwords
            description: Built-in accounts whose passwords are sent, as Simperium's clients do.
          - name: keys
            description: Built-in accounts whose passwords stay with the client.
          - name: tokens
            description: Tokens of built-in accounts.
          - name: partners
            description: Users whom partners vouch for by signed tokens.
          - name: credentials
            description: Users of partners whose passwords are kept here.

        """#
}
