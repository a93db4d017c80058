import Testing
import ThicketProtocol

@Suite struct InitRequestTests {
    private func request(_ json: String) throws -> InitRequest {
        guard case .channel(0, .initialize(let request)) = try client("0:init:" + json) else {
            Issue.record("not an init")
            return InitRequest()
        }
        return request
    }

    @Test("node: everything is a string")
    func node() throws {
        let request = try request(
            #"{"name":"note","clientid":"node-5f2c","api":"1.1","token":"t0","app_id":"app","library":"node-simperium","version":"0.0.1"}"#
        )
        #expect(request.clientID == "node-5f2c")
        #expect(request.name == "note")
        #expect(request.token == "t0")
        #expect(request.appID == "app")
        #expect(request.library == "node-simperium")
        #expect(request.version == "0.0.1")
        #expect(request.command == nil)
        #expect(request.firstRequest == nil)
        #expect(!request.expectsExpired)
    }

    @Test("iOS: the API is a number that is not quite 1.1, the user may be empty")
    func ios() throws {
        for api in ["1.1", "1.1000000238", "1.10000002384185791015625", "11e-1"] {
            let request = try request(
                #"{"clientid":"x","api":"# + api
                    + #","token":"t","app_id":"a","name":"n","library":"osx","version":"1.9.0","username":""}"#)
            #expect(request.api == api)
            #expect(!request.expectsExpired, "\(api)")
            #expect(request.username == "")
        }
    }

    @Test("Android: the version is a number, and a command is included")
    func android() throws {
        let request = try request(
            #"{"api":"1.1","clientid":"x","token":"t","app_id":"a","name":"n","library":"android","version":0,"cmd":"i::::50"}"#
        )
        #expect(request.version == "0")
        #expect(request.firstRequest == .index(IndexRequest(limit: 50)))
        #expect(try self.request(#"{"cmd":"cv:abc"}"#).firstRequest == .changesSince("abc"))
    }

    @Test("browser: no API, so a failure is announced by auth:expired first")
    func browser() throws {
        let request = try request(
            #"{"name":"n","clientid":"sjs-1-ab","build":2012,"token":"t","app_id":"a","cmd":"i:1:::40"}"#)
        #expect(request.expectsExpired)
        #expect(request.build == "2012")
        #expect(request.firstRequest == .index(IndexRequest(wantsData: true, limit: 40)))
    }

    @Test("the API version decides which clients know the newer failures")
    func api() throws {
        for old in ["1", "1.0", "\"1\"", "0", "null", "\"\"", "\"new\"", "true", "[1.1]"] {
            #expect(try request(#"{"api":\#(old)}"#).expectsExpired, "\(old)")
        }
        for new in ["1.1", "\"1.1\"", "2", "\"1.10\"", "1.2", "\"10\""] {
            #expect(try !request(#"{"api":\#(new)}"#).expectsExpired, "\(new)")
        }
    }

    @Test("either spelling of clientid is read; the real one wins")
    func clientID() throws {
        #expect(try request(#"{"api":1,"client_id":"android-1.0"}"#).clientID == "android-1.0")
        #expect(try request(#"{"client_id":"a","clientid":"b"}"#).clientID == "b")
    }

    @Test("an argument that is not an object is a request without fields, not a broken connection")
    func unreadable() throws {
        for json in ["", "{", "[]", "null", "\"x\"", #"{"a":1,"a":2}"#] {
            let request = try request(json)
            #expect(!request.isReadable, "\(json)")
            #expect(request.token == nil)
            #expect(request.expectsExpired)
        }
        #expect(try request("{}").isReadable)
        #expect(try client("0:init") == client("0:init:"))
    }

    @Test("an init cannot hide another init in its command")
    func nested() throws {
        #expect(try request(#"{"cmd":"init:{\"cmd\":\"init:{}\"}"}"#).firstRequest == .unknown(command: "init"))
        #expect(try request(#"{"cmd":""}"#).firstRequest == nil)
        #expect(try request(#"{"cmd":"what"}"#).firstRequest == .unknown(command: "what"))
        #expect(try request(#"{"cmd":"c:{}"}"#).firstRequest == .unknown(command: "c"))
    }

    @Test("an init is written as real servers read it")
    func writes() {
        var request = InitRequest()
        request.clientID = "c\"1"
        request.api = "1.1"
        request.token = "t"
        request.appID = "app"
        request.name = "note"
        request.library = "thicket"
        request.version = "1.0"
        request.command = "cv:abc"
        #expect(
            ClientMessage.channel(2, .initialize(request)).text
                == #"2:init:{"clientid":"c\"1","api":"1.1","token":"t","app_id":"app","name":"note","library":"thicket","version":"1.0","cmd":"cv:abc"}"#
        )
    }
}
