import ThicketProtocol

/// A text is refused with a place inside it, or read as a value that is written and read again without loss.
public func fuzzJSON(_ bytes: [UInt8]) {
    let document: JSONDocument
    do throws(JSONError) {
        document = try JSONDocument(parsing: bytes)
    } catch {
        precondition((0...bytes.count).contains(error.offset), "a fault lies inside the text")
        precondition(error.kind != .unexpectedEnd || error.offset == bytes.count, "the end is at the end")
        return
    }
    let value = document.root.value
    let written = value.serialized()
    precondition(written.count == value.serializedSize, "the size is foretold")
    precondition(!written.contains { $0 < 0x20 }, "what is written is one line")
    guard let again = try? JSONValue(parsing: written) else {
        preconditionFailure("what was written reads back")
    }
    precondition(again == value && again.hashValue == value.hashValue, "what was written reads back equal")
    precondition(again.serialized() == written, "writing is stable")

    var copy = JSONWriter()
    copy.write(document.root)
    precondition(!copy.bytes.contains { $0 == 0x0A || $0 == 0x0D }, "a copied text is one line")
    precondition((try? JSONValue(parsing: copy.bytes)) == value, "a copied text reads the same")
    check(document.root)
}

/// Checks a node and the nodes below it against the tree.
private func check(_ node: JSONNode) {
    switch node.value {
    case .string(let text):
        precondition(node.utf16 == Array(text.utf16), "a string is the same in UTF-16")
    case .number(let number):
        precondition(node.int64 == number.int64, "a number is the same in place")
        precondition(JSONNumber(lexeme: number.lexeme) != nil, "a number is a number by itself")
    case .array(let elements):
        precondition(node.count == elements.count, "elements are counted")
        for (element, value) in zip(node.elements, elements) {
            precondition(element.value == value, "an element is the same in place")
        }
        node.elements.forEach(check)
    case .object(let object):
        precondition(node.count == object.count, "pairs are counted")
        for (place, pair) in node.pairs.enumerated() where place < 32 {
            precondition(object[pair.key] != nil, "a key is found in the tree")
            precondition(
                node[pair.key]?.rawBytes.startIndex == pair.value.rawBytes.startIndex, "a key is found in place")
            check(pair.value)
        }
    default:
        break
    }
}

/// Two lexemes, one per line: comparison, hash and sum agree with each other.
public func fuzzJSONNumber(_ bytes: [UInt8]) {
    let lines = bytes.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
    guard lines.count == 2 else { return }
    let lexemes = lines.map { String(decoding: $0, as: UTF8.self) }
    guard let left = JSONNumber(lexeme: lexemes[0]), let right = JSONNumber(lexeme: lexemes[1]) else {
        return
    }
    let zero: JSONNumber = 0
    for number in [left, right] {
        precondition(number == number && number.adding(zero) == number, "nothing added is nothing changed")
        if let integer = number.int64 {
            precondition(JSONNumber(integer) == number, "a whole number is the number")
            precondition(JSONNumber(integer).hashValue == number.hashValue, "equal numbers hash alike")
        }
        let form: JSONNumber? = .init(lexeme: number.javaScriptForm)
        precondition(form != nil || number.double.isInfinite, "JavaScript's form is a number")
        if let form { precondition(form.double == number.double, "JavaScript's form is the same double") }
    }
    let sum = left.adding(right)
    precondition(sum == right.adding(left), "a sum does not depend on the order")
    if left == right { precondition(left.hashValue == right.hashValue, "equal numbers hash alike") }
    guard let sum else { return }
    precondition(JSONNumber(lexeme: sum.lexeme) != nil, "a sum is a number")
    guard let negative = JSONNumber(lexeme: negated(right.lexeme)), let back = sum.adding(negative)
    else { return }
    precondition(back == left, "what was added can be taken away")
}

private func negated(_ lexeme: String) -> String { lexeme.hasPrefix("-") ? String(lexeme.dropFirst()) : "-" + lexeme }
