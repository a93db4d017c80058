import Testing
import ThicketProtocol
import ThicketTestSupport

@Suite struct JSONObjectTests {
    @Test("keys keep their order; a new value stays in its key's place; a key set again comes last")
    func order() {
        var object: JSONObject = ["b": 1, "a": 2, "c": 3]
        object["a"] = 4
        object["b"] = nil
        object["b"] = 5
        #expect(object.keys == ["a", "c", "b"])
        #expect(JSONValue.object(object).serializedText == #"{"a":4,"c":3,"b":5}"#)
        #expect(object.remove("c") == 3)
        #expect(object.remove("c") == nil)
        #expect(JSONObject([("x", 1), ("y", 2), ("x", 3)]).serialized() == Array(#"{"x":3,"y":2}"#.utf8))
    }

    @Test("keys that look the same but differ in their bytes are different keys, in small objects and in large ones")
    func bytes() {
        for filler: Int in [0, 100] {
            var object = JSONObject((0..<filler).map { (key: "\($0)", value: .null) })
            object["é"] = 1
            object["e\u{301}"] = 2
            #expect(object.count == filler + 2)
            #expect(object["é"] == 1)
            #expect(object["e\u{301}"] == 2)
        }
    }

    @Test("any sequence of edits gives the content of a plain list")
    func model() {
        var random = SeededRandom(seed: 0x4F42_4A)
        for keys in [5, 20, 300] {
            var object = JSONObject()
            var model = [(key: String, value: JSONValue)]()
            for step in 0..<1_500 {
                let key = "key \(Int.random(in: 0..<keys, using: &random))"
                let place: Int? = model.firstIndex { $0.key == key }
                if Int.random(in: 0..<5, using: &random) < 3 {
                    object[key] = .number(JSONNumber(Int64(step)))
                    if let place {
                        model[place].value = .number(JSONNumber(Int64(step)))
                    } else {
                        model.append((key, .number(JSONNumber(Int64(step)))))
                    }
                } else {
                    let removed = object.remove(key)
                    #expect(removed == place.map { model[$0].value })
                    if let place { model.remove(at: place) }
                }
                #expect(object.count == model.count)
                if step % 50 == 0 {
                    #expect(object.keys == model.map(\.key))
                    #expect(object == JSONObject(model.reversed()))
                    #expect(object.hashValue == JSONObject(model.reversed()).hashValue)
                    for (key, value) in model { #expect(object[key] == value) }
                }
            }
        }
    }

    @Test("changes of a copy do not affect the original")
    func copies() {
        let original = JSONObject((0..<50).map { (key: "\($0)", value: .null) })
        var copy = original
        copy["3"] = nil
        copy["x"] = 1
        #expect(original.count == 50)
        #expect(original["x"] == nil)
        #expect(original.contains("3"))
        #expect(!copy.contains("3"))
        #expect(copy.pairs.count == 50)
    }
}
