// Made from docs/openapi.yaml by Tests/Contract/embed.py; a test compares them.

extension OpenAPIDocument {
    static let partners: String = #"""
          # Users of partners.
          /api/v1/authentication/register:
            post:
              operationId: registerUser
              summary: Makes a user of a partner known, by a registration token. The same user gets the same id again.
              tags: [partners]
              security:
                - partnerKey: []
                  bearer: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [email]
                      properties:
                        email: { type: string, maxLength: 254 }
              responses:
                '200': { $ref: '#/components/responses/Registered' }
                '400': { $ref: '#/components/responses/PartnerInvalid' }
                '401': { $ref: '#/components/responses/Expired' }
                '403': { $ref: '#/components/responses/Denied' }
                '413': { $ref: '#/components/responses/PartnerTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/PartnerLimited' }
                '503': { $ref: '#/components/responses/PartnerUnavailable' }

          /api/v2/authentication/register:
            post:
              operationId: registerUserV2
              summary: The same.
              tags: [partners]
              security:
                - partnerKey: []
                  bearer: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [email]
                      properties:
                        email: { type: string, maxLength: 254 }
              responses:
                '200': { $ref: '#/components/responses/Registered' }
                '400': { $ref: '#/components/responses/PartnerInvalid' }
                '401': { $ref: '#/components/responses/Expired' }
                '403': { $ref: '#/components/responses/Denied' }
                '413': { $ref: '#/components/responses/PartnerTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/PartnerLimited' }
                '503': { $ref: '#/components/responses/PartnerUnavailable' }

          /api/v2/authentication/register/guest:
            post:
              operationId: registerGuest
              summary: A guest, by a registration token.
              tags: [partners]
              security:
                - partnerKey: []
                  bearer: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
              responses:
                '200': { $ref: '#/components/responses/PartnerUser' }
                '400': { $ref: '#/components/responses/PartnerInvalid' }
                '401': { $ref: '#/components/responses/Expired' }
                '403': { $ref: '#/components/responses/Denied' }
                '413': { $ref: '#/components/responses/PartnerTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/PartnerLimited' }
                '503': { $ref: '#/components/responses/PartnerUnavailable' }

          /api/v2/authentication/login/guest:
            post:
              operationId: logInGuest
              summary: The guest of a login token, which comes back.
              tags: [partners]
              security:
                - partnerKey: []
                  bearer: []
              parameters:
                - $ref: '#/components/parameters/device'
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [deviceId, entityId]
                      properties:
                        deviceId: { type: string, minLength: 1 }
                        entityId: { type: string }
              responses:
                '200': { $ref: '#/components/responses/PartnerLogin' }
                '400': { $ref: '#/components/responses/PartnerInvalid' }
                '401': { $ref: '#/components/responses/Expired' }
                '403': { $ref: '#/components/responses/Denied' }
                '413': { $ref: '#/components/responses/PartnerTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/PartnerLimited' }
                '503': { $ref: '#/components/responses/PartnerUnavailable' }

          /api/v1/partner/{partner}/customer/{entity}/publickey:
            parameters:
              - $ref: '#/components/parameters/partner'
              - $ref: '#/components/parameters/entity'
            get:
              operationId: readPublicKeys
              summary: The public keys that the user's devices have uploaded.
              tags: [partners]
              security:
                - partnerKey: []
                  bearer: []
              parameters:
                - $ref: '#/components/parameters/device'
              responses:
                '200': { $ref: '#/components/responses/PublicKeys' }
                '401': { $ref: '#/components/responses/Expired' }
                '403': { $ref: '#/components/responses/Denied' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/PartnerLimited' }
                '503': { $ref: '#/components/responses/PartnerUnavailable' }
            put:
              operationId: writePublicKeys
              summary: 'Uploads the public keys of the user''s devices, once: others in their place are refused.'
              tags: [partners]
              security:
                - partnerKey: []
                  bearer: []
              parameters:
                - $ref: '#/components/parameters/device'
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [public_key, sign_key]
                      properties:
                        public_key: { $ref: '#/components/schemas/PublicKey' }
                        sign_key: { $ref: '#/components/schemas/PublicKey' }
              responses:
                '200': { $ref: '#/components/responses/PublicKeys' }
                '400': { $ref: '#/components/responses/PartnerInvalid' }
                '401': { $ref: '#/components/responses/Expired' }
                '403': { $ref: '#/components/responses/Denied' }
                '409': { $ref: '#/components/responses/KeysTaken' }
                '413': { $ref: '#/components/responses/PartnerTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/PartnerLimited' }
                '503': { $ref: '#/components/responses/PartnerUnavailable' }

          /api/v1/partner/{partner}/customer/{entity}/devices:
            parameters:
              - $ref: '#/components/parameters/partner'
              - $ref: '#/components/parameters/entity'
            get:
              operationId: listDevices
              summary: The devices on which the user was let in.
              tags: [partners]
              security:
                - partnerKey: []
                  bearer: []
              parameters:
                - $ref: '#/components/parameters/device'
              responses:
                '200': { $ref: '#/components/responses/Devices' }
                '401': { $ref: '#/components/responses/Expired' }
                '403': { $ref: '#/components/responses/Denied' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/PartnerLimited' }
                '503': { $ref: '#/components/responses/PartnerUnavailable' }

          /v1/user/logout:
            post:
              operationId: logOutUser
              summary: Ends everything that the user has on this device.
              tags: [partners]
              security:
                - partnerKey: []
                  bearer: []
              parameters:
                - $ref: '#/components/parameters/device'
              responses:
                '204': { $ref: '#/components/responses/PartnerDone' }
                '401': { $ref: '#/components/responses/Expired' }
                '403': { $ref: '#/components/responses/Denied' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/PartnerLimited' }
                '503': { $ref: '#/components/responses/PartnerUnavailable' }

          /v2/credentials/register:
            post:
              operationId: registerPassword
              summary: A user with a password, for partners without an auth server.
              tags: [credentials]
              security:
                - partnerKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [username, password]
                      properties:
                        username: { type: string, minLength: 1, maxLength: 254 }
                        password: { type: string, minLength: 8, maxLength: 1024 }
                        phone: { type: string, maxLength: 64 }
              responses:
                '200': { $ref: '#/components/responses/PartnerUser' }
                '400': { $ref: '#/components/responses/PartnerInvalid' }
                '403': { $ref: '#/components/responses/Denied' }
                '413': { $ref: '#/components/responses/PartnerTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/PartnerLimited' }
                '503': { $ref: '#/components/responses/PartnerUnavailable' }

          /v2/credentials/login:
            post:
              operationId: logInPassword
              summary: A login token, in the field `authorization`.
              tags: [credentials]
              security:
                - partnerKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [deviceId, username, password]
                      properties:
                        deviceId: { type: string, minLength: 1 }
                        username: { type: string, minLength: 1, maxLength: 254 }
                        password: { type: string, minLength: 8, maxLength: 1024 }
              responses:
                '200': { $ref: '#/components/responses/PartnerLogin' }
                '400': { $ref: '#/components/responses/PartnerInvalid' }
                '403': { $ref: '#/components/responses/Denied' }
                '413': { $ref: '#/components/responses/PartnerTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/PartnerLimited' }
                '503': { $ref: '#/components/responses/PartnerUnavailable' }

          /v2/credentials/ping:
            get:
              operationId: renewToken
              summary: Another token, up to a day after the end of the one that is shown.
              tags: [credentials]
              security:
                - partnerKey: []
                  bearer: []
              parameters:
                - $ref: '#/components/parameters/device'
              responses:
                '200': { $ref: '#/components/responses/Renewed' }
                '401': { $ref: '#/components/responses/Expired' }
                '403': { $ref: '#/components/responses/Denied' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/PartnerLimited' }
                '503': { $ref: '#/components/responses/PartnerUnavailable' }

          /v2/credentials/change:
            post:
              operationId: changeUserPassword
              summary: Another password. Other devices are signed out.
              tags: [credentials]
              security:
                - partnerKey: []
                  bearer: []
              parameters:
                - $ref: '#/components/parameters/device'
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [oldPassword, newPassword]
                      properties:
                        oldPassword: { type: string, minLength: 8 }
                        newPassword: { type: string, minLength: 8, maxLength: 1024 }
              responses:
                '204': { $ref: '#/components/responses/PartnerDone' }
                '400': { $ref: '#/components/responses/PartnerInvalid' }
                '401': { $ref: '#/components/responses/Expired' }
                '403': { $ref: '#/components/responses/Denied' }
                '413': { $ref: '#/components/responses/PartnerTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/PartnerLimited' }
                '503': { $ref: '#/components/responses/PartnerUnavailable' }

          /v2/credentials/forgot:
            post:
              operationId: forgotUserPassword
              summary: Sends a code to a user whose name is an e-mail address; the answer is the same for everybody.
              tags: [credentials]
              security:
                - partnerKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [username]
                      properties:
                        username: { type: string, minLength: 1, maxLength: 254 }
              responses:
                '200': { $ref: '#/components/responses/PartnerEmpty' }
                '400': { $ref: '#/components/responses/PartnerInvalid' }
                '403': { $ref: '#/components/responses/Denied' }
                '413': { $ref: '#/components/responses/PartnerTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/PartnerLimited' }
                '503': { $ref: '#/components/responses/PartnerUnavailable' }

          /v2/credentials/verify:
            post:
              operationId: verifyUserPassword
              summary: Another password, for who has the code. All devices are signed out.
              tags: [credentials]
              security:
                - partnerKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [username, code, password]
                      properties:
                        username: { type: string, minLength: 1, maxLength: 254 }
                        code: { type: string, minLength: 1, maxLength: 64 }
                        password: { type: string, minLength: 8, maxLength: 1024 }
              responses:
                '204': { $ref: '#/components/responses/PartnerDone' }
                '400': { $ref: '#/components/responses/PartnerInvalid' }
                '403': { $ref: '#/components/responses/Denied' }
                '413': { $ref: '#/components/responses/PartnerTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/PartnerLimited' }
                '503': { $ref: '#/components/responses/PartnerUnavailable' }

        """#
}
