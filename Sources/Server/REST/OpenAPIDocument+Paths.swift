// Made from docs/openapi.yaml by Tests/Contract/embed.py; a test compares them.

extension OpenAPIDocument {
    static let paths: String = #"""
        paths:
          /version:
            get:
              operationId: newestVersions
              summary: The newest versions of client programs, a text for each platform; clients compare it with their own.
              tags: [user]
              security: []
              responses:
                '200':
                  description: What the operator has set; an empty object when nothing is.
                  content:
                    application/json:
                      schema: { type: object, additionalProperties: { type: string } }
                      example: { linux: 0.1.0 }

          /1/{app}/{bucket}/i/{key}:
            parameters:
              - $ref: '#/components/parameters/app'
              - $ref: '#/components/parameters/bucket'
              - $ref: '#/components/parameters/key'
            get:
              operationId: readObject
              summary: The object as it is now.
              tags: [objects]
              parameters:
                - $ref: '#/components/parameters/ifMatch'
                - $ref: '#/components/parameters/ifNoneMatch'
              responses:
                '200': { $ref: '#/components/responses/Object' }
                '304': { $ref: '#/components/responses/NotModified' }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '403': { $ref: '#/components/responses/Forbidden' }
                '404': { $ref: '#/components/responses/NotFound' }
                '412': { $ref: '#/components/responses/Precondition' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/Limited' }
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
                '429': { $ref: '#/components/responses/Limited' }
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
                '429': { $ref: '#/components/responses/Limited' }
                '503': { $ref: '#/components/responses/Unavailable' }

          /1/{app}/__options__/i/{key}:
            parameters:
              - $ref: '#/components/parameters/app'
              - $ref: '#/components/parameters/key'
            get:
              operationId: readOptions
              summary: The options of the app's buckets of that name.
              description: |
                With an admin key of the app in the place of the token. The key is the buckets' name.
              tags: [administration]
              responses:
                '200': { $ref: '#/components/responses/Object' }
                '304': { $ref: '#/components/responses/NotModified' }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '403': { $ref: '#/components/responses/Forbidden' }
                '404': { $ref: '#/components/responses/NotFound' }
                '412': { $ref: '#/components/responses/Precondition' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/Limited' }
                '503': { $ref: '#/components/responses/Unavailable' }
            post:
              operationId: writeOptions
              summary: Sets options of the app's buckets of that name.
              description: |
                Options that this server does not follow, `schema` among them, are refused with 400 `invalid_option`; `null` is an
                option that is not set. What a smaller capacity leaves no room for goes when objects are made.
              tags: [administration]
              parameters:
                - $ref: '#/components/parameters/clientid'
                - $ref: '#/components/parameters/ccid'
                - $ref: '#/components/parameters/replace'
                - $ref: '#/components/parameters/response'
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      properties:
                        capacity:
                          description: Objects that there may be; a new one too many pushes out those changed least recently.
                          type: [integer, 'null']
                          minimum: 1
                          maximum: 100000
                        version_max:
                          description: Newest versions of an object that stay readable.
                          type: [integer, 'null']
                          minimum: 1
                          maximum: 1000000
                        version10_max:
                          description: Every tenth version that stays readable behind those.
                          type: [integer, 'null']
                          minimum: 0
                          maximum: 1000000
                      additionalProperties: false
                    example: { capacity: 1000 }
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
                '429': { $ref: '#/components/responses/Limited' }
                '503': { $ref: '#/components/responses/Unavailable' }
            delete:
              operationId: removeOptions
              summary: Buckets of that name follow the server's settings again.
              tags: [administration]
              parameters:
                - $ref: '#/components/parameters/clientid'
                - $ref: '#/components/parameters/ccid'
              responses:
                '200': { $ref: '#/components/responses/Removed' }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '403': { $ref: '#/components/responses/Forbidden' }
                '404': { $ref: '#/components/responses/NotFound' }
                '409': { $ref: '#/components/responses/Duplicate' }
                '412': { $ref: '#/components/responses/Precondition' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/Limited' }
                '503': { $ref: '#/components/responses/Unavailable' }

          /1/{app}/{bucket}/i/{key}/v/{version}:
            parameters:
              - $ref: '#/components/parameters/app'
              - $ref: '#/components/parameters/bucket'
              - $ref: '#/components/parameters/key'
              - $ref: '#/components/parameters/version'
            get:
              operationId: readVersion
              summary: The object as it was at a version that is still kept.
              tags: [objects]
              parameters:
                - $ref: '#/components/parameters/ifMatch'
                - $ref: '#/components/parameters/ifNoneMatch'
              responses:
                '200': { $ref: '#/components/responses/Object' }
                '304': { $ref: '#/components/responses/NotModified' }
                '400': { $ref: '#/components/responses/Invalid' }
                '401': { $ref: '#/components/responses/Unauthorized' }
                '403': { $ref: '#/components/responses/Forbidden' }
                '404': { $ref: '#/components/responses/NotFound' }
                '412': { $ref: '#/components/responses/Precondition' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/Limited' }
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
                '429': { $ref: '#/components/responses/Limited' }
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
                '429': { $ref: '#/components/responses/Limited' }
                '503': { $ref: '#/components/responses/Unavailable' }

        """#
}
