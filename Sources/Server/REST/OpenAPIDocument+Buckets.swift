// Made from docs/openapi.yaml by Tests/Contract/embed.py; a test compares them.

extension OpenAPIDocument {
    static let buckets: String = #"""
          /1/{app}/{bucket}/index:
            parameters:
              - $ref: '#/components/parameters/app'
              - $ref: '#/components/parameters/bucket'
            get:
              operationId: readIndex
              summary: A page of the bucket's objects, most recently changed first.
              description: |
                All pages of a walk show the bucket as it stood at `current`. A mark that is unknown begins a new walk.
              tags: [buckets]
              parameters:
                - name: data
                  in: query
                  description: Anything that is not empty; the entries then carry their objects in `d`.
                  schema: { type: string }
                  example: '1'
                - name: mark
                  in: query
                  description: From the page before.
                  schema: { type: string }
                - name: limit
                  in: query
                  description: Entries on the page at most. More than 1000 counts as 1000.
                  schema: { type: integer, format: int64, minimum: 1, default: 100 }
                - name: since
                  in: query
                  description: Only objects that changed after this cv. 404 when it is unknown.
                  schema: { type: string }
              responses:
                '200':
                  description: The page.
                  content:
                    application/json:
                      schema: { $ref: '#/components/schemas/IndexPage' }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '403': { $ref: '#/components/responses/Forbidden' }
                '404': { $ref: '#/components/responses/NotFound' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/Limited' }
                '503': { $ref: '#/components/responses/Unavailable' }

          /1/{app}/{bucket}/changes:
            parameters:
              - $ref: '#/components/parameters/app'
              - $ref: '#/components/parameters/bucket'
            get:
              operationId: waitForChanges
              summary: All changes since a cv, oldest first; waits for the first one when there is none.
              description: |
                Without `cv` from now on. The answer is an empty array when nothing came for as long as the server lets a
                request wait.
              tags: [buckets]
              parameters:
                - $ref: '#/components/parameters/clientid'
                - name: cv
                  in: query
                  schema: { type: string }
              responses:
                '200': { $ref: '#/components/responses/Changes' }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '403': { $ref: '#/components/responses/Forbidden' }
                '404': { $ref: '#/components/responses/NotFound' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/Limited' }
                '503': { $ref: '#/components/responses/Unavailable' }
            post:
              operationId: sendChanges
              summary: Sends several changes; answered with what became of each, after all are on disk.
              tags: [buckets]
              parameters:
                - $ref: '#/components/parameters/clientid'
                - name: wait
                  in: query
                  description: Taken for the sake of old clients. The answer always waits.
                  schema: { type: string }
                  example: '1'
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      oneOf:
                        - type: array
                          maxItems: 1000
                          items: { $ref: '#/components/schemas/SentChange' }
                        - $ref: '#/components/schemas/SentChange'
              responses:
                '200': { $ref: '#/components/responses/Changes' }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '403': { $ref: '#/components/responses/Forbidden' }
                '404': { $ref: '#/components/responses/NotFound' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/Limited' }
                '503': { $ref: '#/components/responses/Unavailable' }

          /1/{app}/{bucket}/all:
            parameters:
              - $ref: '#/components/parameters/app'
              - $ref: '#/components/parameters/bucket'
            get:
              operationId: readAllChanges
              summary: The changes that all users of the app make in their buckets of this name; waits while there are none.
              description: |
                With an admin key of the app in the place of the token. In `id` the user stands before the object's key, with a
                slash between. A cv of these changes is good here only; without one the answer tells what comes from now on.
              tags: [administration]
              parameters:
                - $ref: '#/components/parameters/clientid'
                - name: cv
                  in: query
                  description: Of the newest change that is known.
                  schema: { type: string }
                - name: data
                  in: query
                  description: With each change the object as it left it, in `d`.
                  schema: { enum: ['0', '1'], default: '0' }
                - name: username
                  in: query
                  description: With each change the name of its user.
                  schema: { enum: ['0', '1'], default: '0' }
                - name: most_recent
                  in: query
                  description: Of one answer's changes of an object only the newest.
                  schema: { enum: ['0', '1'], default: '0' }
                - name: skip_clientid
                  in: query
                  description: Leaves out the changes of these clients; 64 at most.
                  schema: { type: array, maxItems: 64, items: { type: string } }
                - name: batch
                  in: query
                  description: Changes of one answer. More than 1000 counts as 1000.
                  schema: { type: integer, format: int64, minimum: 1, default: 1000 }
              responses:
                '200':
                  description: Changes, oldest first; none when nothing came for as long as the server lets a request wait.
                  content:
                    application/json:
                      schema: { type: array, items: { $ref: '#/components/schemas/WideChange' } }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '403': { $ref: '#/components/responses/Forbidden' }
                '404': { $ref: '#/components/responses/NotFound' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/Limited' }
                '503': { $ref: '#/components/responses/Unavailable' }

          /1/{app}/buckets:
            parameters:
              - $ref: '#/components/parameters/app'
            get:
              operationId: listBuckets
              summary: The user's buckets that hold changes, or are to hold sealed ones.
              tags: [user]
              responses:
                '200':
                  description: Their names.
                  content:
                    application/json:
                      schema:
                        type: object
                        required: [buckets]
                        properties:
                          buckets:
                            type: array
                            items:
                              type: object
                              required: [name]
                              properties:
                                name: { type: string }
                                mode: { type: string, enum: [sealed], description: Missing for open ones. }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '404': { $ref: '#/components/responses/NotFound' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/Limited' }
                '503': { $ref: '#/components/responses/Unavailable' }

          /1/{app}/user:
            parameters:
              - $ref: '#/components/parameters/app'
            get:
              operationId: readUser
              summary: Whose token that is.
              tags: [user]
              responses:
                '200':
                  description: The user.
                  content:
                    application/json:
                      schema:
                        type: object
                        required: [userid, username]
                        properties:
                          userid: { type: string }
                          username: { type: string }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '404': { $ref: '#/components/responses/NotFound' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/Limited' }
                '503': { $ref: '#/components/responses/Unavailable' }

        """#
}
