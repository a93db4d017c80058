// Made from docs/openapi.yaml by Tests/Contract/embed.py; a test compares them.

extension OpenAPIDocument {
    static let bundles: String = #"""
          /1/{app}/auth/bundle:
            parameters:
              - $ref: '#/components/parameters/app'
            get:
              operationId: readBundle
              summary: The sealed keys of the user's data.
              description: |
                By the token of an account, or by a partner's login token, which comes with the device. Who shows the latter is refused
                as partners' requests are.
              tags: [keys]
              security:
                - token: []
              parameters:
                - $ref: '#/components/parameters/tokenDevice'
              responses:
                '200': { $ref: '#/components/responses/Bundle' }
                '400': { $ref: '#/components/responses/BundleRefused' }
                '401': { $ref: '#/components/responses/BundleRefused' }
                '403': { $ref: '#/components/responses/BundleRefused' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/BundleLimited' }
                '503': { $ref: '#/components/responses/BundleRefused' }
            put:
              operationId: writeBundle
              summary: Writes the bundle in the place of the version that it names, 0 for the first.
              description: |
                Of the body a partner's user has more than `version` and `bundle`: what is left out stays as it was. Where a `recover` is
                kept, the `r` that proves it is wanted.
              tags: [keys]
              security:
                - token: []
              parameters:
                - $ref: '#/components/parameters/tokenDevice'
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [version, bundle]
                      properties:
                        version: { type: integer, format: int64, minimum: 0 }
                        bundle: { $ref: '#/components/schemas/Sealed' }
                        r: { $ref: '#/components/schemas/Key' }
                        recover: { $ref: '#/components/schemas/Key' }
                        access:
                          anyOf:
                            - $ref: '#/components/schemas/Sealed'
                            - { type: 'null' }
                        kdf: { const: 1 }
                        n: { type: integer, minimum: 17, maximum: 20 }
                        p: { type: integer, minimum: 1, maximum: 4 }
                        salt: { $ref: '#/components/schemas/Salt' }
              responses:
                '200': { $ref: '#/components/responses/BundleVersion' }
                '400': { $ref: '#/components/responses/BundleRefused' }
                '401': { $ref: '#/components/responses/BundleRefused' }
                '403': { $ref: '#/components/responses/BundleRefused' }
                '409': { $ref: '#/components/responses/BundleRefused' }
                '413': { $ref: '#/components/responses/BundleRefused' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/BundleLimited' }
                '503': { $ref: '#/components/responses/BundleRefused' }

          /1/{app}/auth/delete:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: deleteKeyAccount
              summary: Ends the account and erases its data.
              tags: [keys]
              security:
                - token: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [a]
                      properties:
                        a: { $ref: '#/components/schemas/Key' }
              responses:
                '200': { $ref: '#/components/responses/Ended' }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '413': { $ref: '#/components/responses/AccountTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/auth/tokens:
            parameters:
              - $ref: '#/components/parameters/app'
            get:
              operationId: listTokens
              summary: The user's tokens, the newest first.
              tags: [tokens]
              security:
                - token: []
              responses:
                '200': { $ref: '#/components/responses/Tokens' }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

            post:
              operationId: addToken
              summary: A login for another device, by who shows the account's access key beside the token.
              tags: [tokens]
              security:
                - token: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [r]
                      properties:
                        r: { $ref: '#/components/schemas/Key' }
                        device: { type: string }
              responses:
                '200': { $ref: '#/components/responses/AddedToken' }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '413': { $ref: '#/components/responses/AccountTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/auth/pair:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: openPairing
              summary: What a new device shows, for an old one; there for two minutes under a code that is made of it.
              tags: [keys]
              security: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [hello]
                      properties:
                        hello: { $ref: '#/components/schemas/Sealed' }
              responses:
                '200': { $ref: '#/components/responses/PairingOpened' }
                '400': { $ref: '#/components/responses/AccountError' }
                '409': { $ref: '#/components/responses/AccountError' }
                '413': { $ref: '#/components/responses/AccountTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/auth/pair/{code}:
            parameters:
              - $ref: '#/components/parameters/app'
              - name: code
                in: path
                required: true
                schema: { type: string, minLength: 1, pattern: '^[a-z2-7]+$' }
                example: abcdefghijklmnopqrstuvwxya
            get:
              operationId: lookAtPairing
              summary: What both have left; when the answer is there, it is given once.
              tags: [keys]
              security: []
              responses:
                '200': { $ref: '#/components/responses/Pairing' }
                '400': { $ref: '#/components/responses/AccountError' }
                '404': { $ref: '#/components/responses/AccountError' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }
            put:
              operationId: answerPairing
              summary: What an old device has sealed for the new one.
              tags: [keys]
              security: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [sealed]
                      properties:
                        sealed: { $ref: '#/components/schemas/Sealed' }
              responses:
                '200': { $ref: '#/components/responses/Done' }
                '400': { $ref: '#/components/responses/AccountError' }
                '404': { $ref: '#/components/responses/AccountError' }
                '409': { $ref: '#/components/responses/AccountError' }
                '413': { $ref: '#/components/responses/AccountTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/auth/tokens/{id}:
            parameters:
              - $ref: '#/components/parameters/app'
              - name: id
                in: path
                required: true
                schema: { type: string, minLength: 1, pattern: '^[0-9a-f]+$' }
                example: 90ab34cd56ef7812
            delete:
              operationId: endToken
              summary: Ends one token, and closes what it has opened.
              tags: [tokens]
              security:
                - token: []
              responses:
                '204': { $ref: '#/components/responses/Nothing' }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/auth/notes:
            parameters:
              - $ref: '#/components/parameters/app'
            get:
              operationId: noteStanding
              summary: How many encrypted notes the user may have.
              description: Of apps that keep encrypted notes in the bucket `onions`; others answer 403.
              tags: [tokens]
              security:
                - token: []
              responses:
                '200': { $ref: '#/components/responses/NoteStanding' }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '403': { $ref: '#/components/responses/AccountError' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/auth/logout:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: logOut
              summary: Ends the token that is shown.
              tags: [tokens]
              security:
                - token: []
              responses:
                '204': { $ref: '#/components/responses/Nothing' }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

        """#
}
