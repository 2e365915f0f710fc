; What the interpreter provides in its own language.

(define (not value) (if value #f #t))
(define (caar list) (car (car list)))
(define (cadr list) (car (cdr list)))
(define (cddr list) (cdr (cdr list)))

(define (reverse list)
  (define (onto list made)
    (if (null? list) made (onto (cdr list) (cons (car list) made))))
  (onto list ()))

(define (length list)
  (define (count list number)
    (if (null? list) number (count (cdr list) (+ number 1))))
  (count list 0))

(define (append2 first second)
  (if (null? first) second (cons (car first) (append2 (cdr first) second))))

(define (append . lists)
  (if (null? lists)
      ()
      (if (null? (cdr lists))
          (car lists)
          (append2 (car lists) (apply append (cdr lists))))))

(define (map function list)
  (define (onto list made)
    (if (null? list) (reverse made) (onto (cdr list) (cons (function (car list)) made))))
  (onto list ()))

; `(a ,b ,@c) makes a list of a, the value of b, and the elements of the value of c.
(defmacro quasiquote (part)
  (if (pair? part)
      (if (eq? (car part) 'unquote)
          (cadr part)
          (if (if (pair? (car part)) (eq? (caar part) 'unquote-splicing) #f)
              (list 'append (cadr (car part)) (list 'quasiquote (cdr part)))
              (list 'cons (list 'quasiquote (car part)) (list 'quasiquote (cdr part)))))
      (list 'quote part)))

; (let ((name value) ...) expression ...), and with a name before it a loop.
(defmacro let (bindings . body)
  (if (symbol? bindings)
      (list
        (list 'lambda ()
          (cons 'define (cons (cons bindings (map car (car body))) (cdr body)))
          (cons bindings (map cadr (car body)))))
      (cons (cons 'lambda (cons (map car bindings) body)) (map cadr bindings))))

(defmacro let* (bindings . body)
  (if (null? bindings)
      `(let () ,@body)
      `(let (,(car bindings)) (let* ,(cdr bindings) ,@body))))

(defmacro cond clauses
  (if (null? clauses)
      #f
      (if (eq? (caar clauses) 'else)
          (cons 'begin (cdr (car clauses)))
          (list 'if (caar clauses)
            (cons 'begin (cdr (car clauses)))
            (cons 'cond (cdr clauses))))))

(defmacro and parts
  (cond
    ((null? parts) #t)
    ((null? (cdr parts)) (car parts))
    (else (list 'if (car parts) (cons 'and (cdr parts)) #f))))

(defmacro or parts
  (cond
    ((null? parts) #f)
    ((null? (cdr parts)) (car parts))
    (else `(let ((%value ,(car parts))) (if %value %value (or ,@(cdr parts)))))))

(defmacro when (condition . body) `(if ,condition (begin ,@body) #f))
(defmacro unless (condition . body) `(if ,condition #f (begin ,@body)))

(define (for-each function list)
  (unless (null? list)
    (function (car list))
    (for-each function (cdr list))))

(define (filter is-wanted list)
  (let loop ((list list) (made ()))
    (cond
      ((null? list) (reverse made))
      ((is-wanted (car list)) (loop (cdr list) (cons (car list) made)))
      (else (loop (cdr list) made)))))

(define (fold function first list)
  (if (null? list)
      first
      (fold function (function first (car list)) (cdr list))))

(define (member value list)
  (cond
    ((null? list) #f)
    ((equal? value (car list)) list)
    (else (member value (cdr list)))))

(define (assoc key list)
  (cond
    ((null? list) #f)
    ((equal? key (caar list)) (car list))
    (else (assoc key (cdr list)))))

(define (numbers-below end)
  (let loop ((number end) (made ()))
    (if (= number 0) made (loop (- number 1) (cons (- number 1) made)))))
