// Made from docs/openapi.yaml by Tests/Contract/embed.py; a test compares them.

extension OpenAPIDocument {
    static let paths: String = #"""
        paths:
          /{bucket}/i/{key}:
            parameters:
              - $ref: '#/components/parameters/bucket'
              - $ref: '#/components/parameters/key'
            get:
              operationId: readObject
              summary: The object as it is now.
              tags: [objects]
              parameters:
                - $ref: '#/components/parameters/ifNoneMatch'
              responses:
                '200': { $ref: '#/components/responses/Object' }
                '304': { $ref: '#/components/responses/NotModified' }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '403': { $ref: '#/components/responses/Forbidden' }
                '404': { $ref: '#/components/responses/NotFound' }
                '414': { $ref: '#/components/responses/TooLong' }
                '503': { $ref: '#/components/responses/Unavailable' }
            post:
              operationId: writeObject
              summary: Sets members of the object, which is made if it is not there.
              description: Members that the body does not name stay, unless `replace` puts the body in the object's place.
              tags: [objects]
              parameters:
                - $ref: '#/components/parameters/clientid'
                - $ref: '#/components/parameters/ccid'
                - $ref: '#/components/parameters/replace'
                - $ref: '#/components/parameters/response'
                - $ref: '#/components/parameters/ifMatch'
              requestBody: { $ref: '#/components/requestBodies/Object' }
              responses:
                '200': { $ref: '#/components/responses/Written' }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '403': { $ref: '#/components/responses/Forbidden' }
                '404': { $ref: '#/components/responses/NotFound' }
                '409': { $ref: '#/components/responses/Duplicate' }
                '412': { $ref: '#/components/responses/Precondition' }
                '413': { $ref: '#/components/responses/TooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '503': { $ref: '#/components/responses/Unavailable' }
            delete:
              operationId: removeObject
              summary: Removes the object. Its old versions stay readable.
              tags: [objects]
              parameters:
                - $ref: '#/components/parameters/clientid'
                - $ref: '#/components/parameters/ccid'
                - $ref: '#/components/parameters/ifMatch'
              responses:
                '200': { $ref: '#/components/responses/Removed' }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '403': { $ref: '#/components/responses/Forbidden' }
                '404': { $ref: '#/components/responses/NotFound' }
                '409': { $ref: '#/components/responses/Duplicate' }
                '412': { $ref: '#/components/responses/Precondition' }
                '414': { $ref: '#/components/responses/TooLong' }
                '503': { $ref: '#/components/responses/Unavailable' }

          /{bucket}/i/{key}/v/{version}:
            parameters:
              - $ref: '#/components/parameters/bucket'
              - $ref: '#/components/parameters/key'
              - $ref: '#/components/parameters/version'
            get:
              operationId: readVersion
              summary: The object as it was at a version that is still kept.
              tags: [objects]
              parameters:
                - $ref: '#/components/parameters/ifNoneMatch'
              responses:
                '200': { $ref: '#/components/responses/Object' }
                '304': { $ref: '#/components/responses/NotModified' }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '403': { $ref: '#/components/responses/Forbidden' }
                '404': { $ref: '#/components/responses/NotFound' }
                '414': { $ref: '#/components/responses/TooLong' }
                '503': { $ref: '#/components/responses/Unavailable' }
            post:
              operationId: writeOnVersion
              summary: As writeObject, as a change made on that version and carried over what came since.
              tags: [objects]
              parameters:
                - $ref: '#/components/parameters/clientid'
                - $ref: '#/components/parameters/ccid'
                - $ref: '#/components/parameters/replace'
                - $ref: '#/components/parameters/response'
                - $ref: '#/components/parameters/ifMatch'
              requestBody: { $ref: '#/components/requestBodies/Object' }
              responses:
                '200': { $ref: '#/components/responses/Written' }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '403': { $ref: '#/components/responses/Forbidden' }
                '404': { $ref: '#/components/responses/NotFound' }
                '409': { $ref: '#/components/responses/Duplicate' }
                '412': { $ref: '#/components/responses/Precondition' }
                '413': { $ref: '#/components/responses/TooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '503': { $ref: '#/components/responses/Unavailable' }
            delete:
              operationId: removeVersion
              summary: Removes the object if that is its newest version.
              tags: [objects]
              parameters:
                - $ref: '#/components/parameters/clientid'
                - $ref: '#/components/parameters/ccid'
                - $ref: '#/components/parameters/ifMatch'
              responses:
                '200': { $ref: '#/components/responses/Removed' }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '403': { $ref: '#/components/responses/Forbidden' }
                '404': { $ref: '#/components/responses/NotFound' }
                '409': { $ref: '#/components/responses/Duplicate' }
                '412': { $ref: '#/components/responses/Precondition' }
                '414': { $ref: '#/components/responses/TooLong' }
                '503': { $ref: '#/components/responses/Unavailable' }

          /{bucket}/index:
            parameters:
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
                '503': { $ref: '#/components/responses/Unavailable' }

          /{bucket}/changes:
            parameters:
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
                '414': { $ref: '#/components/responses/TooLong' }
                '503': { $ref: '#/components/responses/Unavailable' }

          /buckets:
            get:
              operationId: listBuckets
              summary: The user's buckets that hold changes.
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
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '414': { $ref: '#/components/responses/TooLong' }
                '503': { $ref: '#/components/responses/Unavailable' }

          /user:
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
                '414': { $ref: '#/components/responses/TooLong' }
                '503': { $ref: '#/components/responses/Unavailable' }

        """#
}
