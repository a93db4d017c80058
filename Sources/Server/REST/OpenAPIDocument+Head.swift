// Made from docs/openapi.yaml by Tests/Contract/embed.py; a test compares them.

extension OpenAPIDocument {
    static let head: String = #"""
        openapi: 3.1.0
        info:
          title: Thicket data API
          version: 0.1.0
          summary: Objects, versions and changes of a user's buckets over HTTP.
          description: |
            The same buckets that sockets sync. A change made here is decided, stored and told to sockets like one of
            theirs, and the reverse. Decisions and reasons stand in docs/PROTOCOL.md, section "Over HTTP".
          license:
            name: Apache 2.0
            identifier: Apache-2.0
        servers:
          - url: http://127.0.0.1:8000/1/{app}
            description: A server on this machine. Paths below stand behind the app's name.
            variables:
              app:
                default: notes
                description: 1 to 64 letters, digits or any of . _ - in any case.
        security:
          - token: []
        tags:
          - name: objects
            description: One object at a time.
          - name: buckets
            description: What a bucket holds, and what happens in it.
          - name: user
            description: Whose token that is.

        """#
}
